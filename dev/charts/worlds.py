"""What a values file can switch on, and the kustomize component that each switch stands for.

A world is a set of switches that are on: one installation that the chart can make, and an overlay
of the base and components that kustomize builds for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

World = frozenset[str]


@dataclass(frozen=True)
class Switch:
    """One choice in the values: the condition of a template in which it is on."""

    name: str
    condition: str


SWITCHES = (
    Switch("extender", ".Values.extender.enabled"),
    Switch("scheduler", ".Values.scheduler.enabled"),
    Switch("app-wrapper", ".Values.appWrappers.enabled"),
    Switch("wrapped-secrets", ".Values.appWrappers.secrets"),
    Switch("redis", ".Values.redis.enabled"),
    Switch("forecaster", ".Values.forecaster.enabled"),
    Switch("member", ".Values.member.enabled"),
    Switch("dispatcher", ".Values.dispatcher.enabled"),
    Switch("provisioning", ".Values.provisioning.enabled"),
    Switch("dashboard", ".Values.dashboard.enabled"),
    Switch("viewer", ".Values.roles.viewer"),
    Switch("fit", ".Values.roles.fit"),
    Switch("roles", ".Values.roles.people"),
    Switch("volcano-labels", ".Values.volcanoLabels.enabled"),
    Switch("monitoring", ".Values.monitoring.enabled"),
    Switch("node-name", ".Values.nodeNamePolicy.enabled"),
    Switch("network-policies", ".Values.networkPolicies.enabled"),
    Switch("cert-manager", '(eq .Values.certificates "CertManager")'),
    Switch("mutating-admission-policy", '(eq .Values.gating "MutatingAdmissionPolicy")'),
    Switch("ha", ".Values.highAvailability"),
)
CONDITIONS = {switch.name: switch.condition for switch in SWITCHES}


@dataclass(frozen=True)
class Exclusion:
    """Two switches that cannot both be on, and what an installation with both is told."""

    pair: World
    message: str


EXCLUSIONS = (
    Exclusion(
        frozenset(("extender", "scheduler")),
        "extender.enabled and scheduler.enabled are both true; allowed: one of them, for the "
        "second scheduler has the extender in its own pod",
    ),
    Exclusion(
        frozenset(("mutating-admission-policy", "app-wrapper")),
        "gating is MutatingAdmissionPolicy and appWrappers.enabled is true; allowed with "
        "AppWrappers: gating Webhook, for only the webhook knows the creator of an AppWrapper",
    ),
    Exclusion(
        frozenset(("mutating-admission-policy", "redis")),
        "gating is MutatingAdmissionPolicy and redis.enabled is true; allowed with Redis: gating "
        "Webhook, which says where heads keep their state",
    ),
    Exclusion(
        frozenset(("mutating-admission-policy", "dispatcher")),
        "gating is MutatingAdmissionPolicy and dispatcher.enabled is true; allowed with the "
        "dispatcher: gating Webhook, which says that another cluster runs a RayCluster",
    ),
    Exclusion(
        frozenset(("mutating-admission-policy", "cert-manager")),
        "gating is MutatingAdmissionPolicy and certificates is CertManager; allowed without a "
        "webhook: certificates SelfSigned, for there is no certificate to be made",
    ),
)


def components(world: World) -> list[str]:
    """The components of a world in the order in which they change each other."""
    named = [switch.name for switch in SWITCHES if switch.name in world]
    if "cert-manager" in world and world & {"extender", "scheduler"}:
        named.insert(named.index("cert-manager") + 1, "cert-manager-extender")
    return named


def is_allowed(world: World) -> bool:
    """Tell whether nothing in it excludes anything else in it."""
    return not any(each.pair <= world for each in EXCLUSIONS)


def worlds_of(names: Iterable[str], most: int | None = None) -> Iterator[World]:
    """All allowed worlds of some switches, of at most so many at once; the smallest first."""
    chosen = list(names)
    for size in range((len(chosen) if most is None else most) + 1):
        yield from filter(is_allowed, map(frozenset, combinations(chosen, size)))


def concerned(differs: Callable[[World, World], bool]) -> list[str]:
    """The switches that change something, as `differs` tells of two worlds.

    Looked for with nothing else on and with each other one: what only three together change shows
    when the chart is rendered.
    """
    names = [switch.name for switch in SWITCHES]
    return [
        name
        for name in names
        if any(
            is_allowed(world | {name}) and differs(world, world | {name})
            for world in worlds_of([each for each in names if each != name], most=1)
        )
    ]

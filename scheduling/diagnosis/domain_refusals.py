"""Refusals of gangs that belong in one domain of a label, or whose replicas do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scheduling.diagnosis.shortfall import listed, numbers_alone, wanted_pods
from scheduling.diagnosis.wording import bounded
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.volumes.claim_effect import BIND_IT
from scheduling.model.gang import Group
from scheduling.model.verdict import Reason, Refusal

_DOMAINS_NAMED = 3

WORKERS = "the workers"
"""Whom a topology binds."""


def closest_domain(
    keys: Sequence[str], name: Sequence[str], refusal: Refusal, whom: str = WORKERS
) -> Refusal:
    """Explain that no domain takes the pods, by what stops them in the best one."""
    said = f"no single {_joined(keys)} holds {whom}; {_joined(name)} comes closest"
    return _introduced(said, refusal)


def in_domain(
    keys: Sequence[str], name: Sequence[str], refusal: Refusal, whom: str = WORKERS
) -> Refusal:
    """Say which domain a refusal speaks of."""
    return _introduced(f"{whom} belong in {_joined(keys)} {_joined(name)}", refusal)


def no_label(keys: Sequence[str], whom: str = WORKERS) -> Refusal:
    """Explain that no node is in any domain."""
    said = f"no node has the label {_joined(keys)}, by which {whom} are to be together"
    return Refusal(Reason.NO_FEASIBLE_NODE, said)


def nowhere_together(whom: str) -> Refusal:
    """Explain that nobody says from where volumes are reached, and no one node takes the pods."""
    said = f"no one node holds {whom}, and nothing says from which others the volume is reached"
    return Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {said} ({BIND_IT})")


def scattered(keys: Sequence[str], names: Sequence[Sequence[str]]) -> Refusal:
    """Explain that pods of the gang are in several domains already, or in none."""
    named = ", ".join(_joined(name) for name in names[:_DOMAINS_NAMED]) or "none"
    said = f"the workers are to be in one {_joined(keys)}, but those that have room are in {named}"
    more = len(names) - _DOMAINS_NAMED
    said += f" and {more} more" if more > 0 else ""
    return Refusal(Reason.NO_FEASIBLE_NODE, said)


@dataclass(frozen=True, slots=True)
class ReplicasShort:
    """How replicas of some pod sets stand whose `pods` pods are to be in one domain.

    `fit` of the `wanted` find one, `beside` other pod sets; for the next there is room for `some`
    of its pods in `domain`.
    """

    pod_sets: tuple[str, ...]
    wanted: int
    fit: int
    pods: int
    some: int
    domain: Sequence[str]
    beside: tuple[str, ...] = ()


def replicas_short(
    groups: Iterable[Group], keys: Sequence[str], short: ReplicasShort, room: FreeCapacity
) -> Refusal:
    """Explain that there is room for all pods, but not for whole replicas inside domains."""
    noun, verb = ("replica", "fits") if short.wanted == 1 else ("replicas", "fit")
    beside = f" beside {listed(short.beside)}" if short.beside else ""
    said = (
        f"{short.fit} of {short.wanted} {noun} of {', '.join(short.pod_sets)} {verb}{beside}: "
        f"each needs {short.pods} pods inside one {_joined(keys)}; the next finds room for "
        f"{short.some} in {_joined(short.domain)}"
    )
    numbers = numbers_alone(wanted_pods(groups), room)
    if len(short.pod_sets) == 1:
        most = short.fit * short.pods
        mine = (each.pod_set in short.pod_sets for each in numbers)
        numbers = tuple(
            replace(each, fit=min(each.fit, most)) if is_mine else each
            for each, is_mine in zip(numbers, mine, strict=True)
        )
    return Refusal(Reason.INSUFFICIENT_RESOURCES, bounded([said], ""), numbers)


def replicas_crowded(groups: Iterable[Group], keys: Sequence[str], room: FreeCapacity) -> Refusal:
    """Explain that replicas would find their domains, but not beside the other pods of the gang."""
    wanted = wanted_pods(groups)
    names = ", ".join(dict.fromkeys(pod_set for pod_set, _, _ in wanted))
    said = f"{names} fit alone but not together with each replica inside one {_joined(keys)}"
    return Refusal(Reason.INSUFFICIENT_RESOURCES, bounded([said], ""), numbers_alone(wanted, room))


def no_domain_left(keys: Sequence[str], replicas: int, pod_sets: Sequence[str]) -> Refusal:
    """Explain that no domain has room for all pods of another replica of the surplus."""
    more = "1 more replica" if replicas == 1 else f"any of {replicas} more replicas"
    said = f"no single {_joined(keys)} has room for {more} of {', '.join(pod_sets)}"
    return Refusal(Reason.INSUFFICIENT_RESOURCES, bounded([said], ""))


def _introduced(words: str, refusal: Refusal) -> Refusal:
    return replace(refusal, message=bounded([f"{words}: {refusal.message}"], ""))


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(parts)

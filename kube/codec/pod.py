"""Reads a pod into the shape that the core judges, and names unsupported constraints."""

from collections.abc import Iterator

from kube.codec.fields import shortened
from kube.codec.pod_requests import (
    MOST_PORTS,
    container_requests,
    has_many_ports,
    host_port_requests,
    pod_level_requests,
    pod_total,
)
from kube.codec.profiles.scheduler_profiles import (
    DEFAULT_SCHEDULER,
    INTER_POD_AFFINITY,
    MOST_SPREADS,
    POD_TOPOLOGY_SPREAD,
    STOCK,
    Profile,
    Profiles,
)
from kube.codec.selectors import (
    affinity_terms,
    anti_affinity_terms,
    pod_terms,
    required_terms,
    selection_terms,
    spread_constraints,
)
from kube.codec.volumes.pod_volumes import MOST_VOLUMES, mounts, volume_names, volumes
from kube.objects import core as core_objects
from kube.objects.core import Pod, PodSpec
from scheduling.model import amounts as resources
from scheduling.model import constraints as constraint_model
from scheduling.model.amounts import sorted_requests
from scheduling.model.pod import PodShape

_MOST_TERMS = 200  # no real pod has as many; each costs a look at all nodes


# ---- pods


def pod_shape(pod: Pod, profiles: Profiles = STOCK) -> PodShape:
    """Reduce a pod, as admitted, to what matters to its scheduler, one of the `profiles`.

    A pod with too many terms of a kind is not supported; too many node selection terms are not
    read at all, and no node matches such a shape.
    """
    spec = pod.spec
    profile = profiles.get(spec.scheduler_name or DEFAULT_SCHEDULER)
    off = profile.off if profile else frozenset()
    readable = selection_terms(spec) <= _MOST_TERMS
    reads_affinity = INTER_POD_AFFINITY not in off and pod_terms(spec) <= _MOST_TERMS
    containers = container_requests(spec.containers, "spec.containers")
    init_containers = container_requests(spec.init_containers, "spec.initContainers")
    constraints, mounted = spec.topology_spread_constraints, mounts(pod)
    return PodShape(
        own_requests=sorted_requests(
            {
                **pod_total(spec, containers, init_containers, pod_level_requests(spec)),
                **host_port_requests(spec, off),
                resources.PODS: 1,
            }
        ),
        node_selector=tuple(sorted(spec.node_selector.items())) if readable else (),
        node_affinity=required_terms(spec) if readable else (),
        tolerations=tuple(_toleration(each) for each in spec.tolerations) if readable else (),
        added_affinity=profile.added if profile else None,
        features=tuple(sorted(_features(spec))),
        own_unsupported=tuple(sorted({*_not_modelled(spec, profile)})),
        affinity=affinity_terms(pod) if reads_affinity else (),
        anti_affinity=anti_affinity_terms(pod) if reads_affinity else (),
        spread=() if POD_TOPOLOGY_SPREAD in off else spread_constraints(constraints, pod.metadata),
        volumes=() if len(mounted) > MOST_VOLUMES else volume_names(mounted),
    )


def holds_room(pod: Pod) -> bool:
    """Say whether a pod takes room on some node; a terminating one still does."""
    return room_on(pod) != ""


def room_on(pod: Pod) -> str:
    """Name the node on which a pod takes room: where it is bound, else where it is nominated."""
    if pod.status.phase in ("Succeeded", "Failed"):
        return ""
    return pod.spec.node_name or pod.status.nominated_node_name


def nominated_priority(pod: Pod, profiles: Profiles = STOCK) -> int | None:
    """Return the priority up to which a nomination holds its room; None where it holds for all.

    kube-scheduler passes over nominations of lower priority than the pod at hand. Since 1.35 it
    also writes one for a pod that it has placed and is still binding, where that takes work
    (claims of volumes and devices, a plugin that has it wait): such a pod holds its room.
    """
    spec = pod.spec
    if spec.node_name or not room_on(pod) or _has_claims(spec):
        return None
    if (spec.scheduler_name or DEFAULT_SCHEDULER) not in profiles or not _unschedulable(pod):
        return None
    return spec.priority or 0


def _has_claims(spec: PodSpec) -> bool:
    claims = ("persistentVolumeClaim", "ephemeral")
    return bool(spec.resource_claims) or any(v.get(c) for v in spec.volumes for c in claims)


def _unschedulable(pod: Pod) -> bool:
    return any(
        (each.type, each.status, each.reason) == ("PodScheduled", "False", "Unschedulable")
        for each in pod.status.conditions
    )


# ---- constraints


def _toleration(found: core_objects.Toleration) -> constraint_model.Toleration:
    return constraint_model.Toleration(
        found.key, found.operator or "Equal", found.value, found.effect
    )


def _not_modelled(spec: PodSpec, profile: Profile | None) -> Iterator[str]:
    """Name the constraints that the core does not model, as messages show them.

    The remedy stands behind each, in brackets.
    """
    if profile is None:
        name = shortened(spec.scheduler_name or DEFAULT_SCHEDULER)
        yield f"schedulerName {name} (use one of the schedulers in the coordinator's PROFILES)"
    yield from volumes(spec)
    if has_many_ports(spec):
        yield f"more than {MOST_PORTS} host ports (use fewer)"
    if selection_terms(spec) > _MOST_TERMS:
        yield f"more than {_MOST_TERMS} node selection terms (use fewer, with more values each)"
    else:
        yield from _tolerations(spec)
    if not (profile and INTER_POD_AFFINITY in profile.off) and pod_terms(spec) > _MOST_TERMS:
        yield f"more than {_MOST_TERMS} terms of affinity between pods (use fewer)"
    spread_is_off = profile is not None and POD_TOPOLOGY_SPREAD in profile.off
    if not spread_is_off and len(spec.topology_spread_constraints) > MOST_SPREADS:
        yield f"more than {MOST_SPREADS} topologySpreadConstraints (use fewer)"
    if profile and profile.spreads_by_default and not spec.topology_spread_constraints:
        yield (
            f"default topology spread constraints of scheduler {profile.name} "
            "(give the pods topologySpreadConstraints of their own)"
        )
    if spec.scheduling_group is not None:
        yield "schedulingGroup (leave it out: Muster starts the gang as a whole)"


def _tolerations(spec: PodSpec) -> Iterator[str]:
    for toleration in spec.tolerations:
        if toleration.operator not in ("", "Equal", "Exists"):
            yield f"toleration operator {shortened(toleration.operator)} (use Equal or Exists)"


def _features(spec: PodSpec) -> Iterator[str]:
    """Name the features that a node must declare for the pod, as kube-scheduler 1.36 infers them.

    They are those of component-helpers/nodedeclaredfeatures whose InferForScheduling can be true.
    1.35 infers none unless an alpha gate is on; a pod that needs one passes its API server only
    where other alpha gates are on, and is asked for more than need be.
    """
    rules = (r for c in (*spec.containers, *spec.init_containers) for r in c.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        yield "RestartAllContainersOnContainerExits"
    if spec.host_network and spec.host_users is False:
        yield "UserNamespacesHostNetworkSupport"

"""The restrictions of one moment on a pod shape: pods, topology, queue, volumes, device claims."""

from dataclasses import dataclass

from scheduling.model.constraints import NodeTerm, Requirement, VolumeNodeRestriction
from scheduling.model.devices.class_requests import ClassRequests, class_claims
from scheduling.model.devices.resource_claim import ClaimSpec

Claims = tuple[ClaimSpec, ...]
"""The claims of one pod that are not allocated yet, in the order in which devices are allocated."""


@dataclass(frozen=True, slots=True)
class NodeRestrictions:
    """What one moment adds to what a pod says itself; each field bears the name of what adds it.

    `existing_pods` are the label values that affinity and anti-affinity of existing pods leave,
    `topology` those of the domain in which the gang is tried, `queue` are the node labels, sorted,
    that the gang's queue holds the pod to. `volumes` says from which nodes the volumes are reached,
    `disks` what they add to the requests (sorted, see NodeVolumeLimits), and `unsupported_volumes`
    what of them is not modelled. `claims` are for devices that are not allocated yet, and
    `claimed_from` names each claim that is, with the terms of the nodes that reach its devices.
    `by_class` is what a node gives by devices, by a claim of kube-scheduler's own, where the node
    lists none of the resource.
    `shared_claims` names the claims that are not allocated where pods of the gang share them: all
    of its pods with the same names share all of them.
    `avoided` are nodes, sorted, that the caller rules out for now.
    """

    existing_pods: tuple[Requirement, ...] = ()
    topology: tuple[Requirement, ...] = ()
    queue: tuple[tuple[str, str], ...] = ()
    volumes: tuple[VolumeNodeRestriction, ...] = ()
    disks: tuple[tuple[str, int], ...] = ()
    unsupported_volumes: tuple[str, ...] = ()
    claims: Claims = ()
    by_class: ClassRequests = ()
    shared_claims: tuple[str, ...] = ()
    claimed_from: tuple[tuple[str, tuple[NodeTerm, ...]], ...] = ()
    avoided: tuple[str, ...] = ()

    @property
    def claims_devices(self) -> bool:
        """Say whether devices are to be allocated for the pod, on some nodes at least."""
        return bool(self.claims or self.by_class)

    @property
    def most_claims(self) -> Claims:
        """Return what is allocated for the pod on a node that lists nothing of what it asks for."""
        return self.claims_where(frozenset(each.resource for each in self.by_class))

    def claims_where(self, lacking: frozenset[str]) -> Claims:
        """Return what is allocated for the pod on a node that lists none of these resources."""
        return claims_where(self.claims, self.by_class, lacking)


UNRESTRICTED = NodeRestrictions()
"""Nothing is added."""


def claims_where(claims: Claims, by_class: ClassRequests, lacking: frozenset[str]) -> Claims:
    """Return what is allocated for a pod on a node that lists none of these resources.

    The claim of kube-scheduler's own is the last one.
    """
    return (*claims, *class_claims(by_class, lacking)) if by_class and lacking else claims

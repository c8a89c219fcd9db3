"""What one moment adds to a pod shape: pods, topology, queue, volumes, claims of devices."""

from dataclasses import dataclass

from scheduling.model.constraints import NodeTerm, Requirement, VolumeNodeRestriction
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
    shared_claims: tuple[str, ...] = ()
    claimed_from: tuple[tuple[str, tuple[NodeTerm, ...]], ...] = ()
    avoided: tuple[str, ...] = ()


UNRESTRICTED = NodeRestrictions()
"""Nothing is added."""

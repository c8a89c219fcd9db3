"""A pod's requests for extended resources that a node provides by devices of a DeviceClass.

kube-scheduler (feature DRAExtendedResource) asks the devices of a node only for resources of which
the node lists none, all of them with one claim of its own.
"""

from dataclasses import dataclass
from functools import lru_cache

from scheduling.model.devices.resource_claim import ClaimSpec, Request

SPECS_KEPT = 4096


@dataclass(frozen=True, slots=True)
class ClassRequest:
    """What one container asks for of one resource, as a request of kube-scheduler's claim."""

    resource: str
    request: Request


ClassRequests = tuple[ClassRequest, ...]
"""Those of one pod, in the order in which devices are allocated: by the names of the requests."""


def resources_of(requests: ClassRequests) -> tuple[str, ...]:
    """Return the resources that are asked for, sorted."""
    return tuple(sorted({each.resource for each in requests}))


@lru_cache(maxsize=SPECS_KEPT)
def class_claims(requests: ClassRequests, lacking: frozenset[str]) -> tuple[ClaimSpec, ...]:
    """Return the claim for these resources that a node lists none of, if any is asked for."""
    own = tuple(each.request for each in requests if each.resource in lacking)
    return (ClaimSpec(own),) if own else ()

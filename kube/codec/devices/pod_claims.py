"""Reads the device claims of a pod, and which of them exist."""

from typing import NamedTuple

from kube.objects.core import Pod

MOST_CLAIMS = 32
"""Claims of a pod that are decided; the API server sets no bound. One more is read, to tell."""


class PodClaim(NamedTuple):
    """A claim of a pod.

    `claim` is the object by name, "" while it is not made. With a `template` it is the pod's own.
    `meant`: kube-controller-manager says that the pod is to have none under this name where False.
    `to_come`: it counts as its template says until it is made.
    """

    name: str
    claim: str = ""
    template: str = ""
    meant: bool = True
    to_come: bool = False


def claims_to_come(asked: tuple[PodClaim, ...]) -> tuple[PodClaim, ...]:
    """Have claims of a pod that are not made yet count as their templates say."""
    if all(each.claim or not each.meant for each in asked):
        return asked
    return tuple(each._replace(to_come=each.meant and not each.claim) for each in asked)


def pod_claims(pod: Pod) -> tuple[PodClaim, ...]:
    """List the claims of a pod, in their order: devices are allocated in it."""
    asked = pod.spec.resource_claims
    if not asked:
        return ()
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    found = []
    for each in asked[: MOST_CLAIMS + 1]:
        own, template = each.resource_claim_name or "", each.resource_claim_template_name or ""
        meant = own != "" or each.name not in made or made[each.name] is not None
        claim = own or made.get(each.name) or ""
        found.append(PodClaim(each.name, claim, template if not own else "", meant))
    return tuple(found)

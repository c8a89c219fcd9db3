"""Adds the submitter pod of a RayJob to the request of its gang.

KubeRay creates the submitter once the whole gang runs. It is not a pod of the gang: it has no gate
and no pin, no written placement contains it, and kube-scheduler chooses its node.
"""

from dataclasses import replace

from kube.foreseen.submitter import Submitter
from scheduling.model.gang import SUBMITTER, Group, Member, PendingGang
from scheduling.model.placement import Assignment, Placement


def with_submitter(asked: PendingGang, found: Submitter) -> PendingGang:
    """Return what a gang asks for with one pod more, that starts with it."""
    group = Group(SUBMITTER, "", found.shape, 1)
    member = Member(SUBMITTER, found.shape, found.labels)
    return replace(asked, minimum=(*asked.minimum, group), members=(*asked.members, member))


def parted(placement: Placement) -> tuple[Placement, Assignment | None]:
    """Return the placement of the gang alone, and where its submitter has room."""
    mine = next((each for each in placement.assignments if each.pod_set == SUBMITTER), None)
    if mine is None:
        return placement, None
    return Placement(tuple(each for each in placement.assignments if each is not mine)), mine

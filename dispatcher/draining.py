"""Chooses the gangs that leave a drained member, one at a time, in the order of preemption. Pure.

The least urgent gang goes first, and among equals the newest. A gang that no other member takes
stays.
"""

from collections.abc import Iterator

from dispatcher.candidates import Member, able
from dispatcher.known import Known
from dispatcher.reading import parsed
from dispatcher.view import View
from kube.objects.clusters.member_cluster import DRAINED
from kube.ray.ray_owner import ENDED


def to_move(known: Known) -> Iterator[str]:
    """Yield of each drained member the uid of the object that is to leave it next."""
    for member in known.members.values():
        if member.cluster.spec.state == DRAINED and member.up:
            yield from _first(known, member)


def _first(known: Known, member: Member) -> Iterator[str]:
    there = map(known.views.get, member.gangs)
    movable = [each for each in there if each and _may_move(known, each)]
    least = min((_priority(each) for each in movable), default=0)
    equals = (each for each in movable if _priority(each) == least)
    newest = max(equals, key=_age, default=None)
    if newest is not None:
        yield newest.uid


def _may_move(known: Known, view: View) -> bool:
    """Say whether another member may take it, and its job has not ended."""
    turn, original = view.turn, view.original
    clusters = known.queues.get(turn.queue) if turn is not None else None
    if original is None or clusters is None:
        return False
    if parsed(original.status).get("jobDeploymentStatus") in ENDED:
        return False
    return bool(able(clusters, original.metadata.namespace, known.members))


def _priority(view: View) -> int:
    return view.turn.priority if view.turn is not None else 0


def _age(view: View) -> tuple[str, str]:
    made = view.turn.metadata.creation_timestamp if view.turn is not None else ""
    return made or "", view.uid

"""Has gangs that were placed at once made and released only together, wave after wave."""

from enum import Enum
from typing import NamedTuple

from coordinator.gang.demand import NotReady
from coordinator.gang.together import ALONE
from coordinator.gang.view import GangView
from coordinator.reconcile.look import Look
from coordinator.reconcile.together.ends import has_ended
from reservation.release_order import NONE_DUE, first_unbound, is_ordered
from reservation.slots import is_released
from scheduling.model.gang import GangKey


class Stage(Enum):
    """How far all gangs are that were placed at once."""

    PLACED = "placed"
    RECORDED = "recorded"
    """The records of all say so: those that are held may be resumed."""
    MADE = "made"
    """All pods exist, too: they may be released."""
    BEGUN = "begun"


class ShownPlaced(NamedTuple):
    """What others see of a gang that has a placement; `ends` says that it does not go on."""

    stamp: str
    ends: bool
    stage: Stage
    due: int
    """The first release wave of which a pod is not bound, where the set has several."""


def is_recorded(look: Look) -> bool:
    """Say whether the records of all gangs hold their placements that were placed at once."""
    placed = look.view.reservation.together
    if placed is ALONE or look.view.together.begun:
        return True
    found = _mates_placed(look)
    return len(found) == len(placed.members) and all(each.survey.durable for each in found)


def may_begin(look: Look) -> bool:
    """Say whether pods may be released: all placements are recorded, and all pods are there.

    Where a pod of any of them was released it was so.
    """
    member = look.view.together
    if not member.begun:
        whole = is_recorded(look) and all(map(_has_its_pods, _mates_placed(look)))
        member.begun = whole or has_begun(look)
    return member.begun


def has_begun(look: Look) -> bool:
    """Say whether a pod was released of any gang that was placed at once with this one."""
    member = look.view.together
    if not member.begun:
        member.begun = any(_has_released(look, each) for each in _mates_placed(look))
    return member.begun


def is_broken(look: Look) -> bool:
    """Say whether another gang of those that were placed at once has no such placement."""
    found = _mates_placed(look)
    drops = any("together" in each.record.drops for each in found)
    return drops or len(found) < len(look.view.reservation.together.members)


def due_beside(look: Look) -> int | None:
    """Return the first release wave of which a pod of another gang is not bound.

    Of those that were placed at once with this one; None where all of their pods are in one wave.
    """
    if look.view.reservation.together is ALONE:
        return None
    found = [(each, each.reservation.placement) for each in _mates_placed(look)]
    if not any(is_ordered(placed) for _, placed in found if placed is not None):
        return None
    pods = look.scene.cache.members
    return min(
        (
            first_unbound(placed, pods(each.key, each.cluster_uid))
            for each, placed in found
            if placed is not None and each is not look.view
        ),
        default=NONE_DUE,
    )


def _mates_placed(look: Look) -> list[GangView]:
    """Return the gangs with the stamp of this one, itself among them."""
    placed, namespace = look.view.reservation.together, look.view.key.namespace
    views = (look.scene.views.get(GangKey(namespace, name)) for name in placed.members)
    return [
        each
        for each in views
        if each is not None
        and each.reservation.placement is not None
        and each.reservation.together.stamp == placed.stamp
    ]


def _has_its_pods(view: GangView) -> bool:
    return view.together.begun or (view.is_gathered and not view.held.holds)


def _has_released(look: Look, view: GangView) -> bool:
    if view.together.begun or view.survey.ran:
        return True
    pods = look.scene.cache.members(view.key, view.cluster_uid)
    return any(is_released(pod) and pod.alive for pod in pods)


def shown(look: Look) -> tuple[object, ...]:
    """Return what other members depend on of a gang."""
    view, member, placed = look.view, look.view.together, look.view.reservation
    if placed.placement is not None:
        mate = look.scene.cache.together.of(view.key)
        follow = mate is not None and mate.asked.ends_at_once
        ended = follow and mate is not None and has_ended(look.scene, mate)
        ends = ended or view.eviction.whole is not None or "together" in view.record.drops
        is_begun = view.together.due_beside is not None and view.together.begun
        due = first_unbound(placed.placement, look.pods) if is_begun else 0
        return ShownPlaced(placed.together.stamp, bool(ends), _stage(look), due)
    asked = view.queueing.asked
    reason = asked.reason if isinstance(asked, NotReady) and member.asks is None else ""
    return (member.asks, reason, view.survey.ran, "together" in view.record.drops)


def to_tell(look: Look) -> set[GangKey]:
    """Return the gangs for which it is news what others see of a gang now."""
    view = look.view
    others = {each.key for each in look.scene.cache.together.mates(view.key)}
    names = view.reservation.together.members
    others |= {GangKey(view.key.namespace, name) for name in names}
    return {key for key in others - {view.key} if _is_news(view, look.scene.views.get(key))}


def _is_news(view: GangView, other: GangView | None) -> bool:
    """Say whether another member may go on by what is seen of a gang.

    Those that were placed with it go on together, once the last of them has come so far.
    """
    seen = view.together.shown
    if other is None or not isinstance(seen, ShownPlaced) or not seen.stamp:
        return True
    placed = other.reservation
    is_mate = placed.placement is not None and placed.together.stamp == seen.stamp
    waits = other.together.shown == seen or seen.stage is Stage.PLACED
    return seen.ends or not (is_mate and waits)


def goes_by_others(view: GangView) -> bool:
    """Say whether it matters to a gang what becomes of the others."""
    group = view.together.group
    follows = group is not None and group.ends_at_once
    return follows or view.reservation.placement is None or not view.together.begun


def _stage(look: Look) -> Stage:
    if look.view.together.begun:
        return Stage.BEGUN
    if not is_recorded(look):
        return Stage.PLACED
    return Stage.MADE if all(map(_has_its_pods, _mates_placed(look))) else Stage.RECORDED

"""Opens the views of gangs, and drops those of RayClusters that are gone."""

from collections.abc import Iterable

from coordinator.gang.held_start.phases import Resumed, Waiting
from coordinator.gang.held_start.start import HeldStart
from coordinator.gang.source import followers_of, is_taken_over, offer_of
from coordinator.gang.view import GangView, Reservation
from coordinator.queues.counting import concerns_us
from coordinator.reconcile.look import Scene
from coordinator.reconcile.opening import open_view
from coordinator.reconcile.together.starts import goes_by_others
from coordinator.state.known import Known
from kube.gang.source import GangSource
from scheduling.model.gang import GangKey


def view_of(known: Known, key: GangKey, source: GangSource | None, scene: Scene) -> GangView | None:
    """The view of this very RayCluster, made where there is something to be seen to."""
    view = known.views.get(key)
    if view is not None and (source is None or view.cluster_uid != source.metadata.uid):
        _drop(known, view, scene)
        view = None
    if view is None and source is not None and concerns_us(known.cache, key, source):
        view = known.views[key] = open_view(key, source, scene)
        known.orphan_reservations.drop(key, view.cluster_uid)
        counted = known.quota.queue_of(key, view.cluster_uid)
        view.reservation.queue = view.reservation.queue or counted or ""
        known.room.note_plan(view)
        pods = known.cache.members(key, view.cluster_uid)
        known.agenda.cycle_wanted |= known.room.update(view, pods)
    if view is not None and source is not None and source.takes_over is not None:
        _take_over(known, view, source, scene)
    return view


def _take_over(known: Known, view: GangView, source: GangSource, scene: Scene) -> None:
    """Give a gang the room of the offer that it was created for: no cycle comes in between.

    From then on it is as one that was held, and was resumed for its placement; where the webhook
    held it, it is resumed for that. A new leader reads
    the placement of the offer's record where that of the gang does not have it yet.
    """
    offer = offer_of(source, known.cache)
    if offer is None or not is_taken_over(offer, known.cache):
        return
    if _has_gone_over(known, offer, view.key):
        return
    key = GangKey(view.key.namespace, offer.metadata.name)
    offered = known.views.get(key)
    if offered is None and view.record.gang is None and not view.looked_at:
        offered = open_view(key, offer, scene)
    if offered is None:
        return
    if key in known.views:
        _drop(known, offered, scene)
    if view.reservation.placement is None and not view.released_any:
        state = Waiting if source.is_held else Resumed
        view.held = HeldStart(state(source.metadata.generation), expected=offered.held.expected)
        _move(offered.reservation, view.reservation)
    known.room.update(view, known.cache.members(view.key, view.cluster_uid))
    known.agenda.dirty.add(key)


def _has_gone_over(known: Known, offer: GangSource, key: GangKey) -> bool:
    """Say whether another gang has the room: a RayJob makes a RayCluster for each of its tries."""
    assert offer.offered is not None
    others = followers_of(offer.metadata, offer.offered, known.cache)
    views = (known.views.get(each) for each in others if each != key)
    return any(
        each is not None and (each.reservation.placement is not None or each.released_any)
        for each in views
    )


def _move(offered: Reservation, mine: Reservation) -> None:
    mine.placement, mine.queue = offered.placement, offered.queue
    mine.epoch, mine.decided = offered.epoch, offered.decided
    mine.admitted_as, mine.admitted_at = offered.admitted_as, offered.admitted_at
    mine.minimums = offered.minimums
    offered.placement = None


def _drop(known: Known, view: GangView, scene: Scene) -> None:
    note_misnominated(known, view, frozenset())
    known.orphan_reservations.keep(view, scene.moment.now + scene.patience.arrival)
    known.agenda.cycle_wanted |= known.submitter_room.end(view.key)
    known.agenda.cycle_wanted |= known.room.release(view)
    known.term.window.leave(view.key)
    del known.views[view.key]
    known.cache.foreseen.drop(view.key)
    known.node_quota.drop(view.key)
    known.turns.note(view.key, None)
    known.cycles.joined.forget(view.key)
    known.agenda.wake(view.key, None)
    known.agenda.lines.drop(view.key)
    names = view.reservation.together.members
    known.agenda.dirty |= group_dependents(
        known, (GangKey(view.key.namespace, name) for name in names)
    )


def group_dependents(known: Known, keys: Iterable[GangKey]) -> set[GangKey]:
    """Return those of some gangs that go by what becomes of others of their group."""
    views = (known.views.get(key) for key in keys)
    return {view.key for view in views if view is not None and goes_by_others(view)}


def note_misnominated(known: Known, view: GangView, nodes: frozenset[str]) -> None:
    """Requeue gangs whose releases waited for the end of this gang's nominations."""
    before = known.term.misnominated.pop(view.key, frozenset())
    if nodes:
        known.term.misnominated[view.key] = nodes
    for node in before - nodes:
        known.agenda.dirty |= {view.key, *known.room.gangs_on(node)}

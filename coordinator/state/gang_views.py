"""Opens the views of gangs, and drops those of RayClusters that are gone."""

from coordinator.gang.view import GangView
from coordinator.queues.counting import concerns_us
from coordinator.reconcile.look import Scene
from coordinator.reconcile.opening import open_view
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
    return view


def _drop(known: Known, view: GangView, scene: Scene) -> None:
    note_astray(known, view, frozenset())
    known.orphan_reservations.keep(view, scene.moment.now + scene.patience.arrival)
    known.agenda.cycle_wanted |= known.submitter_room.end(view.key)
    known.agenda.cycle_wanted |= known.room.release(view)
    known.term.window.leave(view.key)
    del known.views[view.key]
    known.cache.foreseen.drop(view.key)
    known.node_quota.drop(view.key)
    known.turns.note(view.key, None)
    known.agenda.wake(view.key, None)
    known.agenda.lines.drop(view.key)
    others = view.reservation.together.members
    known.agenda.dirty |= {GangKey(view.key.namespace, name) for name in others} - {view.key}


def note_astray(known: Known, view: GangView, nodes: frozenset[str]) -> None:
    """Have gangs looked at whose releases waited for the end of nominations of this one."""
    before = known.term.astray.pop(view.key, frozenset())
    if nodes:
        known.term.astray[view.key] = nodes
    for node in before - nodes:
        known.agenda.dirty |= {view.key, *known.room.gangs_on(node)}

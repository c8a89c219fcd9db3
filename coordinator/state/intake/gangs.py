"""Takes in RayClusters and what stands for one, their owners, Gangs, and the writes to them."""

from collections.abc import Iterator, Set

from coordinator.gang.source import source_of
from coordinator.messages.events import (
    ClusterGone,
    ClusterSeen,
    GangGone,
    GangSeen,
    RayOwnerGone,
    RayOwnerSeen,
)
from coordinator.messages.write_ends import (
    RayClusterWriteEnded,
    RayJobWriteEnded,
    WriteEnded,
)
from coordinator.state import rayjob_resumption
from coordinator.state.gang_views import group_dependents
from coordinator.state.known import Known
from kube.gang.dispatched import DispatchedSource, as_recorded
from kube.gang.source import GangSource
from kube.objects.clusters.gang_offer import OFFER_KIND
from kube.objects.gang import Gang
from kube.objects.ray import RayOwner
from kube.ray.ray_cluster import is_terminating
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.holder import offer_gang


def cluster_seen(event: ClusterSeen, known: Known, moment: Moment) -> None:
    """Take in the source of a gang, where something of it changed that is read."""
    meta = event.cluster.metadata
    key = GangKey(meta.namespace, meta.name)
    told = as_recorded(event.cluster, known.cache.gangs.get(key))
    source, before = source_of(told), known.cache.sources.get(key)
    if before is not None and before.content == source.content:
        return  # most of what KubeRay writes there is for its own users
    known.agenda.cycle_wanted |= is_terminating(meta)
    known.cache.put_source(key, source)
    known.agenda.dirty |= group_dependents(known, known.cache.together.take_moved())
    known.agenda.dirty |= {key, *_offer_behind(source)}


def _offer_behind(source: GangSource) -> Iterator[GangKey]:
    """Yield the gang of the offer that a source was created for."""
    if source.takes_over is not None:
        yield GangKey(source.metadata.namespace, offer_gang(source.takes_over.name))


def cluster_gone(event: ClusterGone, known: Known, moment: Moment) -> None:
    """Forget a source."""
    before = known.cache.sources.get(event.key)
    if before is not None and before.metadata.uid == event.uid:
        known.cache.remove_source(event.key)
        known.agenda.dirty |= {*_offer_behind(before)}
        known.unknown_keys.gone(event.key)
    known.agenda.dirty |= group_dependents(known, known.cache.together.take_moved())
    known.agenda.dirty.add(event.key)
    known.agenda.cycle_wanted = True


def ray_owner_seen(event: RayOwnerSeen, known: Known, moment: Moment) -> None:
    """Take in a RayJob or RayService."""
    if known.cache.owners.put(event.owner):
        known.agenda.dirty |= {*gangs_beside(known, event.owner.metadata.uid)}
        known.agenda.dirty |= {*_offers_of(event.owner)}


def ray_owner_gone(event: RayOwnerGone, known: Known, moment: Moment) -> None:
    """Forget a RayJob or RayService."""
    gone = known.cache.owners.get(event.uid)
    known.cache.owners.drop(event.uid)
    known.agenda.dirty |= gangs_beside(known, event.uid)
    if gone is not None:
        known.agenda.dirty |= {*_offers_of(gone)}


def _offers_of(owner: RayOwner) -> Iterator[GangKey]:
    """Yield the gangs of the offers that an owner was created for."""
    meta = owner.metadata
    for each in meta.owner_references:
        if each.kind == OFFER_KIND:
            yield GangKey(meta.namespace, offer_gang(each.name))


def gangs_beside(known: Known, uid: str) -> Set[GangKey]:
    """Return the gangs that go by an owner: those that it made, else those placed with its last."""
    made = known.cache.owners.clusters_of(uid)
    if made or not known.cache.together:
        return made
    views = known.views.values()
    return {each.key for each in views if uid in each.reservation.together.uids}


def ray_job_write_ended(event: RayJobWriteEnded, known: Known, moment: Moment) -> None:
    """Take in how the suspension or resumption of a RayJob ended."""
    view = known.views.get(event.gang)
    if view is None or event.uid not in view.eviction.sent:
        rayjob_resumption.resumption_ended(known, event, moment)
        return
    if event.error is None or event.unknown:
        view.eviction.accepted()
    if event.error is not None:
        del view.eviction.sent[event.uid]
        view.eviction.refused(moment.now, event.error if event.refused else "")
    known.agenda.dirty.add(event.gang)


def ray_cluster_write_ended(event: RayClusterWriteEnded, known: Known, moment: Moment) -> None:
    """Take in how the resumption or suspension of a source ended."""
    view = known.views.get(event.gang)
    if view is not None and view.cluster_uid == event.uid:
        refusal = (event.error or "") if event.refused else ""
        view.held.write.ended(moment.now, event.error, refusal)
        known.agenda.dirty.add(event.gang)


def gang_seen(event: GangSeen, known: Known, moment: Moment) -> None:
    """Take in a Gang."""
    key = GangKey(event.gang.metadata.namespace, event.gang.metadata.name)
    before = known.cache.gangs.get(key)
    if not known.cache.put_gang(event.gang):
        return
    asked = before.status.moves if before is not None else None
    known.agenda.cycle_wanted |= event.gang.status.moves != asked
    _hear_dispatch(known, key)
    source = known.cache.sources.get(key)
    if source is not None and (before is None or _differs(before, event.gang)):
        known.agenda.dirty |= {*_offer_behind(source)}
    view = known.views.get(key)
    if view is None or not view.record.writing:  # else the end of the write has it looked at
        known.agenda.dirty.add(key)


def _differs(before: Gang, after: Gang) -> bool:
    """Say whether a Gang gives another reason, or other numbers."""
    was, now = before.status, after.status
    return (was.phase, was.reason, was.message) != (now.phase, now.reason, now.message)


def _hear_dispatch(known: Known, key: GangKey) -> None:
    """Take in where the dispatcher says that the gang runs: the Gang is its record."""
    before = known.cache.sources.get(key)
    if isinstance(before, DispatchedSource):
        source = source_of(as_recorded(before.form, known.cache.gangs.get(key)))
        if source.content != before.content:
            known.cache.put_source(key, source)
            known.agenda.dirty.add(key)


def gang_gone(event: GangGone, known: Known, moment: Moment) -> None:
    """Forget a Gang."""
    known.agenda.cycle_wanted |= event.key in known.cache.moves
    known.cache.remove_gang(event.key, event.uid)
    _hear_dispatch(known, event.key)
    known.agenda.dirty.add(event.key)


def write_ended(event: WriteEnded, known: Known, moment: Moment) -> None:
    """Take in how the write of a Gang ended."""
    view = known.views.get(event.key)
    if view is None:
        return
    view.record.write_ended(event.error, moment.now)
    known.agenda.dirty.add(event.key)

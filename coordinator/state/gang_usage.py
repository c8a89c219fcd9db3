"""Counts the usage of one gang in its queue and in metrics, and learns how long it ran."""

from coordinator.gang.view import GangView
from coordinator.queues.census import Counted, waits
from coordinator.queues.counting import is_not_managed, pods_that_count
from coordinator.queues.history import began
from coordinator.queues.learned_durations import Run
from coordinator.state.gang_counts import facts_of
from coordinator.state.known import Known
from kube.codec.observed_pod import STRAYS
from kube.ray.gang_terms import queue_counted_in
from scheduling.model.gang import GangKey
from scheduling.model.queue import DEFAULT_QUEUE


def count_held(known: Known, key: GangKey) -> None:
    """Bring what the gang's queue holds up to date, also of a gang that is gone."""
    view = known.views.get(key)
    uids = {pod.member.cluster_uid for pod in known.cache.pods_of(key) if pod.member is not None}
    uids |= known.quota.of(key).keys() | ({view.cluster_uid} if view is not None else set())
    for uid in sorted(uids):
        mine = view if view is not None and view.cluster_uid == uid else None
        kept = known.orphan_reservations.reserved(key, uid)
        reserved = mine.reservation.reserved if mine is not None else kept
        queue, pods = _queue_of(known, key, uid, mine), pods_that_count(known.cache, key, uid)
        known.agenda.cycle_wanted |= known.quota.note(key, uid, queue, pods, reserved)
    held = tuple(known.quota.of(key).values())
    known.reports.census.note(key, Counted(_waits_in(view), held, is_not_managed(known.cache, key)))


def count_for_metrics(known: Known, key: GangKey, now: float) -> None:
    """Bring up to date what metrics tell of the gang."""
    view, facts = known.views.get(key), None
    if view is not None and not view.is_finished:
        held = known.quota.of(key).get(view.cluster_uid)
        queue = _queue_of(known, key, view.cluster_uid, view)
        facts = facts_of(view, queue, held, known.gpu_pools.resources)
    known.term.counts.note(key, facts, now)


def learn_duration(known: Known, key: GangKey, wall: float) -> None:
    """Note that the gang runs; learn from how long it ran once it has ended by itself."""
    view = known.views.get(key)
    over = known.learned.follow(key, _run_of(known, key, view))
    if over is None or (view is not None and not _is_over(view, over)):
        return
    found = known.queues.objects.get(over.queue)
    if found is not None and wall > over.began:
        known.learned.of(found).learn(key.namespace, wall - over.began)
        known.reports.census.changed.add(over.queue)


def _run_of(known: Known, key: GangKey, view: GangView | None) -> Run | None:
    """Return since when a gang runs; None of one that does not, or is being stopped."""
    if view is None or not view.survey.ran or view.eviction.whole is not None:
        return None
    start = None if _is_ended(view) else began(view)
    queue = _queue_of(known, key, view.cluster_uid, view)
    return Run(view.cluster_uid, queue, start) if start else None


def _is_over(view: GangView, run: Run) -> bool:
    return view.cluster_uid != run.uid or _is_ended(view)


def _is_ended(view: GangView) -> bool:
    return view.understood.terminating or view.is_finished


def _queue_of(known: Known, key: GangKey, uid: str, view: GangView | None) -> str:
    """Return the queue that counts what a RayCluster holds: the one it was admitted in."""
    placed, terms = (view.reservation, view.understood.terms) if view else (None, None)
    if placed is not None and placed.queue:
        return placed.queue
    if terms is not None:
        return terms.queue
    if key.name == STRAYS:
        return _queue_of_strays(known, key, uid)
    return known.quota.queue_of(key, uid) or _queue_by_label(known, key, uid)


def _queue_of_strays(known: Known, key: GangKey, noted: str) -> str:
    """Return the queue that is noted on pods, where those of their namespace may use it."""
    open_to = known.queues.selections.open_to(known.cache.namespace_labels(key.namespace))
    return noted if noted in open_to else next(iter(open_to), DEFAULT_QUEUE)


def _queue_by_label(known: Known, key: GangKey, uid: str) -> str:
    """Return the queue that a RayCluster without a record asks for.

    Of one that is gone nothing but its pods is left: they count in a queue of their namespace,
    the first by name where there are several.
    """
    source, selections = known.cache.sources.get(key), known.queues.selections
    labels = known.cache.namespace_labels(key.namespace)
    if source is None or source.metadata.uid != uid:
        return next(iter(selections.open_to(labels)), DEFAULT_QUEUE)
    return queue_counted_in(source.metadata, labels, selections)


def _waits_in(view: GangView | None) -> str:
    """Return the queue that a gang waits in; empty where it waits in none."""
    terms = view.understood.terms if view is not None else None
    return terms.queue if view is not None and terms is not None and waits(view) else ""

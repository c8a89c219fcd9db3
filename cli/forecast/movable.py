"""Lists the running gangs that may be moved, their requests, and the work that a move would lose.

The gangs that may be stopped are those that preemption may stop, by its rules that depend on
neither priority nor quota.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from coordinator.gang.view import GangView
from coordinator.queues.history import began
from coordinator.state.cycle.preemptible import STUCK, parts_of
from coordinator.state.known import Known
from kube.codec.fields import AFTER_ALL, moment_of
from kube.codec.observed_pod import ObservedPod
from kube.objects import names
from runtime.controller.moment import Moment
from scheduling.defragmentation.movable import Movable
from scheduling.model.amounts import is_device
from scheduling.model.gang import GangKey, Group, Member, PendingGang
from scheduling.model.pod import PodShape
from scheduling.model.preemption import GangPart

MICRO: Final = 1_000_000
TOPOLOGY = "it asks for a topology"
BETWEEN_PODS = "it has constraints between pods"
VOLUMES = "its pods mount volumes"
CLAIMS = "its pods have devices by claim"
PORTS = "it asks for host ports"
ENDING = "pods of it are ending, or should have"
TOGETHER = "it started together with others"
STOPPED = "its queue is stopped: it would not start again"
NOT_WHOLE = "it does not run whole: pods of it wait"


@dataclass(frozen=True, slots=True)
class Since:
    """From when on the work of a gang is lost when it is stopped, in seconds since 1970."""

    at: float
    is_checkpoint: bool


@dataclass(slots=True)
class Listed:
    """The gangs that may be moved, those that may not and why, and what could not be read."""

    movables: list[Movable] = field(default_factory=list)
    since: dict[GangKey, Since] = field(default_factory=dict)
    left_out: dict[GangKey, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def list_movable(known: Known, moment: Moment, waiting: Iterable[GangKey]) -> Listed:
    """List the gangs that run whole."""
    by_gang: defaultdict[GangKey, list[GangPart]] = defaultdict(list)
    for part in parts_of(known, moment):
        by_gang[part.gang].append(part)
    found, waits = Listed(), frozenset(waiting)
    for key in sorted(by_gang.keys() - waits, key=str):
        view, parts = known.views.get(key), by_gang[key]
        pods = known.cache.members(key, view.cluster_uid) if view is not None else []
        kept = _why_kept(view, parts, pods, known)
        if view is None or kept:
            found.left_out[key] = kept
            continue
        since, note = _since(view, known, moment)
        found.notes += [note] if note else []
        lost = int(gpus_of(parts) * max(0.0, moment.wall - since.at) * MICRO / 3600)
        found.movables.append(Movable(tuple(parts), _again(view, pods), lost))
        found.since[key] = since
    return found


def gpus_of(parts: Iterable[GangPart]) -> int:
    """Count the devices that parts hold."""
    rooms = (amount for part in parts for _, requests in part.room for amount in requests)
    return sum(amount for resource, amount in rooms if is_device(resource))


def _why_kept(
    view: GangView | None, parts: list[GangPart], pods: list[ObservedPod], known: Known
) -> str:
    """Say why a gang cannot be moved; empty where it can."""
    if any(each.is_ending or each.replica == STUCK for each in parts):
        return ENDING
    kept = next((each.kept_because for each in parts if each.kept_because), "")
    if kept or view is None:
        return kept or "it is of no RayCluster that Muster knows"
    if parts[0].queue in known.queues.stops:
        return STOPPED
    terms, together = view.understood.terms, bool(view.reservation.together.members)
    if together or (terms is not None and terms.topology is not None):
        return TOGETHER if together else TOPOLOGY
    alive = [pod for pod in pods if pod.alive]
    if any(not pod.node or pod.member is None or pod.member.shape is None for pod in alive):
        return NOT_WHOLE
    return next(_constraints(alive), "")


def _constraints(pods: Iterable[ObservedPod]) -> Iterator[str]:
    for pod in pods:
        shape = pod.member.shape if pod.member is not None else None
        if shape is None:
            continue
        if shape.ports:
            yield PORTS
        if shape.affinity or shape.anti_affinity or shape.spread:
            yield BETWEEN_PODS
        if shape.volumes or pod.mounts:
            yield VOLUMES
        if pod.claims:
            yield CLAIMS


def _again(view: GangView, pods: Iterable[ObservedPod]) -> PendingGang:
    """Return all that the gang runs with, as what it asks for at once: none of it is to be lost."""
    counts: Counter[tuple[str, str, PodShape]] = Counter()
    members, priorities = [], []
    for pod in pods:
        if pod.alive and pod.member is not None and pod.member.shape is not None:
            one, shape = pod.member, pod.member.shape
            counts[one.pod_set, one.replica, shape] += 1
            members.append(Member(one.pod_set, shape, pod.kind[1], one.replica))
            priorities.append(pod.priority)
    groups = sorted(counts.items(), key=lambda each: (*each[0][:2], each[0][2].key))
    return PendingGang(
        view.key,
        view.understood.priority,
        0.0,
        tuple(Group(*kind, count) for kind, count in groups),
        members=tuple(members),
        pod_priority=min(priorities),
    )


def _since(view: GangView, known: Known, moment: Moment) -> tuple[Since, str]:
    """Say from when on work is lost, and what is wrong with the annotation that tells it."""
    start = began(view) or moment.wall
    written = known.cache.sources[view.key].metadata.annotations.get(names.LAST_CHECKPOINT)
    if written is None:
        return Since(start, is_checkpoint=False), ""
    at = moment_of(written)
    allowed = "allowed: when it was written, in RFC 3339, such as 2026-01-31T08:00:00Z"
    wrong = f"{view.key}: {names.LAST_CHECKPOINT}: {written!r}"
    if at in (0.0, AFTER_ALL) or not _has_zone(written):
        return Since(start, is_checkpoint=False), f"{wrong} is not a time; {allowed}"
    if at > moment.wall:
        return Since(start, is_checkpoint=False), f"{wrong} is yet to come; {allowed}"
    if at <= start:
        return Since(start, is_checkpoint=False), ""
    return Since(at, is_checkpoint=True), ""


def _has_zone(written: str) -> bool:
    """Say whether a time tells its zone; RFC 3339 asks for it."""
    return "T" in written and (written.endswith("Z") or written[-6:-5] in ("+", "-"))

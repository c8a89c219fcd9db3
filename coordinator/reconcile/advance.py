"""Brings one gang forward: returns the writes that it needs next.

`advance` brings a gang's view in line with what was observed and says which writes are missing.
It is called whenever something that concerns the gang changed, and calling it once more changes
nothing: each action stays marked as under way until its end is reported.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from coordinator.cluster.bind_refusals import Refusals
from coordinator.cluster.cache import ClusterCache
from coordinator.gang import adoption, ending, kept_slots, repair
from coordinator.gang.demand import Demand, NotReady, Settled, demand, topology_of, unmade
from coordinator.gang.kept_slots import Kept
from coordinator.gang.pod_sets import NO_PLACEMENT, is_ready, ready_for_release, survey
from coordinator.gang.priority import AllowedClasses, Asked, lowest_priority
from coordinator.gang.start_window import Window, is_failing
from coordinator.gang.view import LAST_RETRY, GangView
from coordinator.messages.actions import (
    ADOPTED,
    STRANDED,
    TORN,
    Action,
    CreateGang,
    DeletePod,
    EmitEvent,
    FencePod,
    PatchGangSpec,
    Regarding,
    ReleasePod,
    WriteGangStatus,
)
from coordinator.messages.clock import Moment, Patience
from coordinator.reconcile.status import placement_json, status_of, surplus_waits
from coordinator.reconcile.waiting import outside
from coordinator.record.event_budget import Telling, share_of
from coordinator.record.spec import body_of, is_of, spec_of, spec_recorded, terms_recorded
from coordinator.record.status import recorded
from coordinator.record.urgency import GATHER_DELAY, RUNNING, Bustle, Status
from kube.codec.fields import InvalidObject, created_at, moment_of
from kube.codec.observed_pod import ObservedPod
from kube.codec.placement import placement_from_status
from kube.objects import names
from kube.objects.gang import Gang
from kube.objects.ray import RayCluster
from kube.ray.gang_terms import HEAD, GangTerms, Misconfigured, gang_terms
from kube.ray.ray_cluster import (
    OptIn,
    is_terminating,
    makes_invalid_pods,
    opt_in,
    provisioned_since,
    refused_pods,
    was_provisioned,
)
from reservation.edits import placement_from_pins, without_nodes, without_slots
from reservation.replicas import handed_on, trim, without_halves
from reservation.slots import Slots, slots_of
from reservation.unclaimed import without_unclaimed
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.verdict import Reason

OPT_OUT_DELAY = 2.0  # seconds; a label that is just being set is seen by one watch before another

UNTOLD = (
    Reason.GANG_INCOMPLETE,
    Reason.PENDING,
    Reason.RUNNING,
    Reason.SUSPENDED,
    Reason.EXCESS_PODS,
    Reason.TERMINATING,
)
"""Reasons that need no Event: they pass by themselves, or KubeRay says the same.

Nor does Admitted where nothing was said before: a gang that never waited need not be told that its
wait has ended.
"""


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything beside the view that a gang's next step depends on."""

    cache: ClusterCache
    refusals: Refusals
    epoch: int
    patience: Patience
    moment: Moment
    bustle: Bustle
    sighted: bool
    inherited: frozenset[str]
    """The uids of the pods that an earlier leader has seen gated, and may be releasing."""
    allowed: AllowedClasses
    """The priority classes that may raise a gang above its pods."""
    window: Window
    """The gangs that are being started."""


def opt_in_of(cluster: RayCluster, cache: ClusterCache) -> OptIn:
    """Whether the Ray cluster is a gang."""
    meta = cluster.metadata
    return opt_in(meta.labels, meta.annotations, cache.namespace_labels(meta.namespace))


def open_view(key: GangKey, cluster: RayCluster, scene: Scene) -> GangView:
    """Begin a view with what the record says; the pins tell where there is no record.

    Whatever an earlier leader released or may still be releasing is taken as it stands: its
    placement is adopted, and the pods that are still gated are fenced before anything else. So
    they are where the record does not say that nothing was ever decided: it may have been deleted,
    and one with a placement that is not counted is of a release before this.
    """
    view = GangView(key=key, cluster_uid=cluster.metadata.uid, since=scene.moment.now)
    view.telling = Telling(share_of(view.cluster_uid))
    record = scene.cache.gangs.get(key)
    if record is not None and is_of(record, view.cluster_uid):
        _adopt(view, record)
        _take_as_told(view, scene.moment.now)
    pods = scene.cache.members(key, view.cluster_uid)
    if view.placement is None:
        view.placement = _pinned(cluster, pods)
        if view.placement is not None:
            view.ran = any(pod.ready for pod in pods)  # it may have; what runs is not given up
    since = moment_of(provisioned_since(cluster))
    view.pod_removed = since > 0 and adoption.leaves_out_pods(since, pods)
    view.provisioned = was_provisioned(cluster) and not view.pod_removed
    view.ran = view.ran or (view.provisioned and _any_on_node(pods))
    left = [pod.uid for pod in pods if pod.gated and pod.uid in scene.inherited]
    if left and (view.placement or view.decided or not view.written):
        view.decided = max(1, view.decided)
        view.fences = dict.fromkeys(left, f"{scene.epoch}.0")
    return view


def _pinned(cluster: RayCluster, pods: list[ObservedPod]) -> Placement | None:
    """What the pins say; of a RayCluster that is being deleted only what is not bound yet."""
    placement = placement_from_pins(pods)
    if placement is None or not is_terminating(cluster):
        return placement
    return ending.on_their_way(placement, pods)


def _adopt(view: GangView, record: Gang) -> None:
    _read_record(view, record)
    view.decided = record.status.decided
    view.ran = record.status.phase == RUNNING
    if record.status.placement is None:
        return
    try:
        placement = placement_from_status(record.status.placement)
    except InvalidObject:
        return  # edited by hand; what was released is rebuilt from the pins
    view.placement = placement if slots_of(placement) else None
    view.placement_epoch = record.status.placement.epoch


def _take_as_told(view: GangView, now: float) -> None:
    """What the record says an earlier leader told already; it is renewed in its time."""
    said = _where_it_stands(view)
    if said.reason not in ("", *UNTOLD):
        view.telling.adopt(said, now)
        view.notes.refused = said.reason


def _read_record(view: GangView, record: Gang) -> None:
    view.record = record
    view.written = recorded(record.status)


def advance(view: GangView, cluster: RayCluster, scene: Scene) -> list[Action]:
    """Bring the view up to date and return the writes that are missing."""
    pods, foreign = _look(view, cluster, scene)
    doomed = [*_clear_stranded(view, scene), *_remake(view, scene), *_give_up_torn(view, scene)]
    if view.leaving - view.deleted or doomed:
        _stand(view, pods)
    _retreat(view, pods, scene)
    _drop_lost_seats(view, pods, scene)
    _end_kept_slots(view, pods, scene)
    view.asked = _demand(view, cluster, scene)
    if isinstance(view.asked, Settled):
        view.refusal = view.left_out = None
    view.unmade = unmade(view.standing, refused_pods(cluster))
    view.bind_refusal = scene.refusals.said_of(view.key)
    actions = [*foreign, *doomed, *_write_record(view, cluster, scene)]
    _say_where_it_stands(view, pods)
    return actions + list(_pods_forward(view, scene))


def _look(
    view: GangView, cluster: RayCluster, scene: Scene
) -> tuple[list[ObservedPod], list[Action]]:
    """Take in what was observed; returns the gang's pods, and what a foreign record asks for."""
    pods = scene.cache.members(view.key, view.cluster_uid)
    view.forget_pods({pod.uid for pod in pods})
    foreign = _sync_record(view, scene)
    _understand(view, cluster, pods, scene)
    view.leaving = set(view.deleted)
    _stand(view, pods)
    return pods, foreign


def wind_down(view: GangView, cluster: RayCluster, scene: Scene) -> list[Action]:
    """Keep nothing for a RayCluster that is being deleted, and release and decide nothing.

    A release that is on its way is waited for, or fenced, before its room is given up.
    """
    view.telling.hush()
    actions = _give_room_back(view, cluster, scene)
    view.asked = NotReady(Reason.TERMINATING, ending.text(view.standing))
    return actions + _write_record(view, cluster, scene)


def _give_room_back(view: GangView, cluster: RayCluster, scene: Scene) -> list[Action]:
    """Leave of the placement what released pods are on their way to; none is to follow them."""
    pods, foreign = _look(view, cluster, scene)
    doomed = list(_clear_stranded(view, scene))
    gated = [pod for pod in pods if pod.gated and pod.alive]
    if view.placement is not None and _withdraw(view, gated, scene):
        view.placement = ending.on_their_way(view.placement, pods)
    _stand(view, pods)
    view.refusal = view.left_out = view.unmade = None
    view.position, view.kept, view.keeps = 0, Kept(), ""
    fences = list(_fence(view, gated, scene)) if view.placement is not None else []
    return [*foreign, *doomed, *fences]


def _sync_record(view: GangView, scene: Scene) -> list[Action]:
    """Take in the record as it is now; one of an earlier RayCluster of this name must go."""
    record = scene.cache.gangs.get(view.key)
    view.outlived = ""
    if record is None:
        view.record, view.written, view.sent = None, {}, {}
    elif not is_of(record, view.cluster_uid):
        view.record, view.written, view.sent = None, {}, {}
        view.outlived = ending.outlived_by(record)
        return _clear_away(view, record, scene)
    elif record is not view.record:
        _read_record(view, record)
    return []


def _clear_away(view: GangView, record: Gang, scene: Scene) -> list[Action]:
    """Have a Gang that is not the record, or is none any more, keep nothing from anybody."""
    if view.writing or view.write_attempts.not_before > scene.moment.now:
        return []
    actions = ending.clear_away(view.key, record, scene.epoch)
    view.writing = bool(actions)
    return actions


# --- what the RayCluster asks for ---------------------------------------------------------------


def _understand(view: GangView, cluster: RayCluster, pods: list[ObservedPod], scene: Scene) -> None:
    """Read the terms; a gang that was admitted or ran goes on under recorded ones if they break."""
    lowest = lowest_priority(pods)
    terms, view.problem = _terms(view, cluster, lowest, scene)
    if terms is None and (view.placement is not None or view.ran):
        known = view.record is not None and view.record.spec.pod_sets
        terms = view.terms or (terms_recorded(view.record) if known and view.record else None)
    view.terms = terms
    said_before = view.provisioned or not view.pod_removed
    view.provisioned = was_provisioned(cluster) and said_before
    view.terminating = is_terminating(cluster)
    view.never_made = makes_invalid_pods(cluster)
    asked = _class_asked(None if view.problem else terms, view.key.namespace, scene)
    view.priority = asked.priority(lowest)
    if view.placement is not None and terms is not None:
        view.placement = _kept(view.placement, pods, terms, view.targets)


def _kept(
    placement: Placement, pods: list[ObservedPod], terms: GangTerms, targets: Mapping[str, str]
) -> Placement | None:
    """What of a placement is still of use: no seats for nobody, no half replicas."""
    hosts = {each.name: each.hosts for each in terms.pod_sets}
    whole = without_halves(placement, pods, hosts)
    kept = handed_on(trim(whole, pods, _most_slots(terms, whole)), pods)
    counts = {each.name: each.count for each in terms.pod_sets}
    claimed = without_unclaimed(kept, pods, counts, hosts, targets)
    kept = kept if claimed is kept else without_halves(claimed, pods, hosts)
    if not slots_of(kept):
        return None
    return placement if kept == placement else kept


def _most_slots(terms: GangTerms, placement: Placement) -> dict[str, int]:
    """How many slots each pod set may have: no more than its pods, no half of a spare replica."""
    if all(each.hosts == 1 for each in terms.pod_sets):
        return {each.name: each.count for each in terms.pod_sets}
    have: Counter[str] = Counter()
    for slot, count in slots_of(placement).items():
        have[slot.kind.pod_set] += count
    whole = {
        each.name: each.minimum + max(0, have[each.name] - each.minimum) // each.hosts * each.hosts
        for each in terms.pod_sets
        if each.hosts
    }
    return {each.name: min(each.count, whole.get(each.name, 0)) for each in terms.pod_sets}


def _terms(
    view: GangView, cluster: RayCluster, lowest: int | None, scene: Scene
) -> tuple[GangTerms | None, str]:
    terms = _terms_asked(view, cluster, scene.cache)
    if isinstance(terms, Misconfigured):
        return None, terms.message
    problem = _class_asked(terms, view.key.namespace, scene).problem(lowest)
    return (None, problem) if problem else (terms, "")


def _terms_asked(
    view: GangView, cluster: RayCluster, cache: ClusterCache
) -> GangTerms | Misconfigured:
    """Read the terms where the RayCluster or its namespace is not the one that was read last."""
    labels = cache.namespace_labels(cluster.metadata.namespace)
    if view.read is None or view.read[0] is not cluster or view.read[1] is not labels:
        view.read = (cluster, labels, gang_terms(cluster, labels))
    return view.read[2]


def _class_asked(terms: GangTerms | None, namespace: str, scene: Scene) -> Asked:
    name = terms.priority_class if terms is not None else ""
    allowed = scene.allowed.within(namespace)
    return Asked(name, namespace, scene.cache.priority_classes, allowed)


# --- where it stands ----------------------------------------------------------------------------


def _stand(view: GangView, pods: list[ObservedPod]) -> None:
    if view.terms is None:
        view.standing = ()
    else:
        view.standing = survey(view.terms, pods, view.placement, view.targets, view.leaving)
    view.outside = outside(view.terms, pods)
    view.ready = sum(pod.ready for pod in pods if pod.alive)
    view.durable = view.placement is not None and _is_written(view, view.placement)
    view.ran = _has_run(view, pods)


def _has_run(view: GangView, pods: list[ObservedPod]) -> bool:
    """Whether the gang ran since it holds room; without terms that can be lost, and not found."""
    if view.terms is None:
        return view.ran and (view.placement is not None or _any_on_node(pods))
    began = view.placement is not None or any(each.settled for each in view.standing)
    before = view.provisioned and adoption.runs(view.standing)
    return began and (view.ran or is_ready(view.standing) or before)


def _any_on_node(pods: Iterable[ObservedPod]) -> bool:
    return any(pod.node and pod.alive for pod in pods)


def _is_written(view: GangView, placement: Placement) -> bool:
    """Whether the record holds the placement, and will when what is under way has arrived."""
    same = view.written.get("placement") == placement_json(placement, view.placement_epoch)
    return same and not view.replacing


def _drop_lost_seats(view: GangView, pods: list[ObservedPod], scene: Scene) -> None:
    """Decide anew what cannot be had any more: all of it while nothing was released."""
    if view.placement is not None:
        avoided = scene.refusals.nodes(view.key.namespace)
        lost = repair.lost_nodes(view, pods, scene.cache.columns(), avoided)
        left = without_nodes(view.placement, pods, lost) if lost else view.placement
        left = repair.without_overtaken(view, left, pods)
        left = repair.without_stalled(view, left, pods)
        if left is not view.placement:
            view.placement = _kept(left, pods, view.terms, view.targets) if view.terms else left
            _stand(view, pods)
    if repair.is_void(view):
        view.placement = None
        _stand(view, pods)


def _end_kept_slots(view: GangView, pods: list[ObservedPod], scene: Scene) -> None:
    """Give up what is kept for lost pods when their time is over; not while a watch is down."""
    now, patience = scene.moment.now, _slot_patience(view, scene)
    slots = _note_kept(view, pods, scene)
    over = view.kept.over(now, patience)
    gone = kept_slots.ended(slots, over, view.standing) if scene.sighted else None
    if gone and view.placement is not None:
        left = without_slots(view.placement, gone)
        terms = view.terms
        view.placement = _kept(left, pods, terms, view.targets) if terms else _or_none(left)
        _stand(view, pods)
        _note_kept(view, pods, scene)
    view.keeps = view.kept.text(patience)


def _slot_patience(view: GangView, scene: Scene) -> float:
    patience = scene.patience.slot
    return min(patience, kept_slots.CERTAIN) if view.never_made else patience


def _note_kept(view: GangView, pods: list[ObservedPod], scene: Scene) -> Slots:
    placement = view.placement or NO_PLACEMENT
    slots = kept_slots.kept_slots(placement, view.standing, pods)
    view.kept.note(slots, scene.moment)
    return slots


def _or_none(placement: Placement) -> Placement | None:
    return placement if slots_of(placement) else None


def _demand(view: GangView, cluster: RayCluster, scene: Scene) -> Demand:
    if view.problem and view.placement is None:
        return NotReady(Reason.MISCONFIGURED, view.problem)
    if view.terms is None:
        return Settled()
    if not any(each.terms.count for each in view.standing):
        return NotReady(Reason.SUSPENDED, "the RayCluster is suspended: it asks for no pods")
    asked = view.terms.topology
    topology = topology_of(asked, view.standing, view.placement) if asked else None
    created = created_at(cluster.metadata)
    refused = refused_pods(cluster)
    found = demand(view.key, view.priority, created, view.standing, refused, topology)
    if isinstance(found, NotReady) and found.reason is Reason.GANG_INCOMPLETE:
        waits = adoption.hindrance(view.standing)
        return NotReady(Reason.NOT_RELEASED_BY_MUSTER, waits) if waits else found
    if not isinstance(found, PendingGang) or view.setback_until <= scene.moment.now:
        return found
    return replace(found, setbacks=view.setbacks)


# --- what went wrong with released pods ---------------------------------------------------------


def _clear_stranded(view: GangView, scene: Scene) -> Iterator[Action]:
    """Also where the placement is gone: a release may have arrived after its node was lost."""
    now, columns = scene.moment.now, scene.cache.columns()
    news = []
    for pod in repair.stranded(view, columns, now, scene.patience.bind):
        if repair.takes(pod, pod.settled_on, columns):
            news.append(scene.refusals.note(pod, now + scene.patience.refusal))
        yield from _delete(view, pod, now, STRANDED)
    text = next(filter(None, news), "")
    if text:
        uid, reason = view.cluster_uid, Reason.BIND_REFUSED
        yield EmitEvent(view.key, uid, warning=True, reason=reason, message=text)


def _remake(view: GangView, scene: Scene) -> Iterator[Action]:
    """Delete pods that nobody released and kube-scheduler cannot place: they come back gated."""
    now, patience = scene.moment.now, scene.patience.bind
    late = repair.unplaceable(view, now, patience)
    if late and scene.sighted and view.rounds.are_open(now, patience):
        for pod in late:
            yield from _delete(view, pod, now, ADOPTED)


def _give_up_torn(view: GangView, scene: Scene) -> Iterator[Action]:
    """Give back the room of a gang that never ran whole and will not.

    Nothing is given up on what cannot be seen: the clock stands still while a watch is down.
    """
    if not repair.is_torn(view) or not scene.sighted:
        view.torn_since = None
        return
    now = scene.moment.now
    view.torn_since = now if view.torn_since is None else view.torn_since
    if now < view.torn_since + scene.patience.torn:
        return
    ours, others = list(repair.released(view)), list(adoption.removable(view.standing))
    if others and view.rounds.are_open(now, scene.patience.bind):
        ours += others
    for pod in ours:
        yield from _delete(view, pod, now, TORN)


def _retreat(view: GangView, pods: list[ObservedPod], scene: Scene) -> None:
    """Give the room back of a gang that cannot begin, because a release is refused for ever.

    Not before every pod is fenced of which a release may be on its way, for longer than anybody
    waits. Where the API server has refused all that were sent, none is: it may refuse fences too.
    """
    if any(each.settled for each in view.standing):
        view.setbacks, view.setback_until, view.setback = 0, 0.0, ""
    if not repair.is_refused(view) or not scene.sighted:
        view.refused_since, view.retreating = None, False
        return
    now = scene.moment.now
    view.refused_since = now if view.refused_since is None else view.refused_since
    if now < view.refused_since + scene.patience.torn:
        return
    if not view.retreating:
        said = repair.release_refusals(view)[0]
        view.retreating, view.setback = (
            True,
            f"gave its room back, for a release is refused: {said}",
        )
    gated = [pod for each in view.standing for pod in each.gated]
    if _withdraw(view, gated, scene):
        view.placement, view.refused_since, view.retreating = None, None, False
        view.setbacks += 1
        view.setback_until = now + scene.patience.setback
        _stand(view, pods)


def _withdraw(view: GangView, gated: list[ObservedPod], scene: Scene) -> bool:
    """Have no release of gated pods arrive any more; say whether that is so already."""
    for pod in gated:
        if pod.uid in view.unsure | view.inflight:
            _require_new_fence(view, pod, "", scene.epoch)
        else:
            view.targets.pop(pod.uid, None)
    return not view.inflight and all(_fence_holds(view, pod) for pod in gated)


def _delete(view: GangView, pod: ObservedPod, now: float, why: str) -> Iterator[Action]:
    view.leaving.add(pod.uid)
    wanted = pod.uid not in view.deleted and pod.uid not in view.inflight
    if wanted and view.attempts_at(pod.uid).not_before <= now:
        view.inflight.add(pod.uid)
        view.deleted.add(pod.uid)
        view.pod_removed = True
        node, version = pod.settled_on, pod.resource_version
        yield DeletePod(view.key, pod.namespace, pod.name, pod.uid, version, node, why)


# --- the record ---------------------------------------------------------------------------------


def _write_record(view: GangView, cluster: RayCluster, scene: Scene) -> list[Action]:
    """Create the Gang, or bring its spec, then its status in line; one write at a time."""
    if view.writing or view.write_attempts.not_before > scene.moment.now:
        return []
    spec = spec_of(view.cluster_uid, view.priority, view.terms)
    if view.record is None and (view.terminating or view.outlived):
        return []  # the garbage collector may have been faster; or its name is not free
    if view.record is None:
        return _create(view, body_of(cluster, spec), scene.moment.now)
    meta = view.record.metadata
    urgent = view.placement is not None and not view.durable
    if spec != spec_recorded(view.record) and not urgent:
        view.writing = True
        return [PatchGangSpec(view.key, meta.uid, meta.resource_version, spec)]
    return _write_status(view, scene)


def _create(view: GangView, body: dict[str, Any], now: float) -> list[Action]:
    """Create the Gang when a pod has come: that tells the priority, which the spec holds."""
    view.due = view.urgency.fall_behind(now) + GATHER_DELAY
    incomplete = isinstance(view.asked, NotReady) and view.asked.reason == Reason.GANG_INCOMPLETE
    if incomplete and now < view.due and not any(each.exist for each in view.standing):
        return []
    view.writing, view.due = True, None
    return [CreateGang(view.key, body)]


def _write_status(view: GangView, scene: Scene) -> list[Action]:
    assert view.record is not None
    not_ready = view.asked if isinstance(view.asked, NotReady) else None
    status = status_of(view, not_ready, epoch=scene.epoch, stamp=scene.moment.stamp)
    now = scene.moment.now
    refused = view.refusal is not None and not_ready is None and view.waits_for_room
    due = view.urgency.due(status, view.written, scene.bustle, now, refused=refused)
    view.due = _not_again_at_once(view, status, due)
    if view.due is None or view.due > now:
        return []
    view.writing, view.due, view.sent = True, None, status
    view.replacing = status.get("placement") != view.written.get("placement")
    view.urgency.sent(status, view.written, now)
    meta = view.record.metadata
    decides = view.placement is not None and not view.durable
    return [WriteGangStatus(view.key, meta.uid, meta.resource_version, status, decides)]


def _not_again_at_once(view: GangView, status: Status, due: float | None) -> float | None:
    """When to write a status; if it was taken before, somebody or an older schema drops a part."""
    if due is None or status != view.sent:
        return due
    return max(due, view.urgency.written_at + LAST_RETRY)


def _say_where_it_stands(view: GangView, pods: list[ObservedPod]) -> None:
    """Have an Event on the reason that the record holds, where its user needs one.

    The Gang and the head pod show it too: that is where a user looks who does not know better.
    """
    said, telling = _where_it_stands(view), view.telling
    heads = (pod for pod in pods if pod.alive and pod.member and pod.member.pod_set == HEAD)
    one = [Regarding("v1", "Pod", head.name, head.uid) for head in islice(heads, 1)]
    if view.outlived:
        telling.standing, telling.others = said, tuple(one)
        return
    if said.reason in (Reason.RUNNING, ""):
        telling.heard = ""
    smooth = said.reason == Reason.ADMITTED and telling.heard in ("", Reason.ADMITTED)
    if smooth or said.reason in ("", *UNTOLD) or view.record is None:
        telling.standing = None
        return
    telling.standing = said
    gang = Regarding(names.API_VERSION, "Gang", view.key.name, view.record.metadata.uid)
    telling.others = (gang, *one)


def _where_it_stands(view: GangView) -> EmitEvent:
    """What there is to tell by the record: of a gang that has its place, which pods wait beside."""
    reason, message = surplus_waits(view.written)
    if view.outlived:
        reason, message = Reason.TERMINATING, view.outlived
    elif not reason:
        reason, message = view.written.get("reason", ""), view.written.get("message", "")
    return EmitEvent(view.key, view.cluster_uid, reason != Reason.ADMITTED, reason, message)


def wake_at(view: GangView, scene: Scene) -> float | None:
    """When the gang is to be looked at again though nothing happens to it."""
    now = scene.moment.now
    moments = [a.not_before for a in view.attempts.values()]
    moments += [since + scene.patience.bind for since in view.stuck_since.values()]
    moments.append(view.rounds.next_begin)
    if (end := view.kept.next_end(_slot_patience(view, scene))) is not None:
        moments.append(end)
    if view.out_since is not None:
        moments.append(view.out_since + OPT_OUT_DELAY)
    if view.torn_since is not None:
        moments.append(view.torn_since + scene.patience.torn)
    if view.refused_since is not None:
        moments.append(view.refused_since + scene.patience.torn)
    moments.append(view.setback_until)
    moments += [at for at in (view.due, view.telling.next_at) if at is not None]
    moments.append(view.write_attempts.not_before)
    return min((moment for moment in moments if moment > now), default=None)


# --- the pods -----------------------------------------------------------------------------------


def _pods_forward(view: GangView, scene: Scene) -> Iterator[Action]:
    """Fence what must be fenced; release what has a written seat."""
    fenced = list(_fences(view, scene))
    yield from fenced
    if fenced or not view.durable or not scene.sighted or (view.problem and view.terms is None):
        return
    if repair.is_hindered(view) or view.retreating:
        return
    ready = ready_for_release(view.standing)
    if not ready or not _may_begin(view, scene):
        return
    for pod, node in ready:
        if _free_to_act(view, pod, scene) and _fence_holds(view, pod):
            view.targets[pod.uid] = node
            view.inflight.add(pod.uid)
            assert pod.raw is not None
            yield ReleasePod(view.key, pod.raw, node)


def _may_begin(view: GangView, scene: Scene) -> bool:
    """Whether a gang may be released now; where a part of it is, the rest does not wait."""
    if any(each.settled for each in view.standing) or is_failing(view):
        return True
    created = created_at(scene.cache.clusters[view.key].metadata)
    rank = (view.admitted_as, -view.priority, created, str(view.key))
    return scene.window.admits(view.key, rank, scene.moment.now)


def _fences(view: GangView, scene: Scene) -> Iterator[Action]:
    if view.placement is None:
        return
    seated = (seat for each in view.standing for seat in each.seated)
    unseated = ((pod, "") for each in view.standing for pod in each.waiting)
    for pod, node in (*seated, *unseated):
        _require_new_fence(view, pod, node, scene.epoch)
        yield from _fence(view, [pod], scene)


def _fence(view: GangView, pods: Iterable[ObservedPod], scene: Scene) -> Iterator[Action]:
    for pod in pods:
        if not _fence_holds(view, pod) and _free_to_act(view, pod, scene):
            view.inflight.add(pod.uid)
            assert pod.raw is not None
            yield FencePod(view.key, pod.raw, view.fences[pod.uid])


def _require_new_fence(view: GangView, pod: ObservedPod, node: str, epoch: int) -> None:
    """A pod whose release may be on its way to another node needs a new mark.

    The token counts up within the term, because an annotation that stays the same would not
    change the pod's resourceVersion.
    """
    sent_to = view.targets.get(pod.uid)
    if sent_to is not None and sent_to != node and pod.uid not in view.inflight:
        count = int(view.fences.get(pod.uid, f"{epoch}.0").rpartition(".")[2]) + 1
        view.fences[pod.uid] = f"{epoch}.{count}"
        del view.targets[pod.uid]


def _fence_holds(view: GangView, pod: ObservedPod) -> bool:
    wanted = view.fences.get(pod.uid)
    return wanted is None or (pod.member is not None and pod.member.fence == wanted)


def _free_to_act(view: GangView, pod: ObservedPod, scene: Scene) -> bool:
    tried = view.attempts.get(pod.uid)
    return pod.uid not in view.inflight and (tried is None or tried.not_before <= scene.moment.now)


def opted_out(view: GangView, cluster: RayCluster, scene: Scene) -> list[Action]:
    """The gang was opted out: its gated pods go unpinned, its room is given back, its record ends.

    A release cannot be taken back, and the gate on a pod is evidence that the webhook, which reads
    the truth, saw a gang: so the news must be seen clearly, and last for a while. Until then all
    stays as it is, but nothing is released. Then pods that are on their way are waited for.
    """
    view.telling.hush()
    view.asked = Settled()
    if not scene.sighted or view.key.namespace not in scene.cache.namespaces:
        view.out_since = None
        return []
    now = scene.moment.now
    view.out_since = now if view.out_since is None else view.out_since
    if now < view.out_since + OPT_OUT_DELAY:
        return []
    if view.placement is None:
        return [*_set_free(view, scene), *_delete_record(view, scene)]
    actions = _give_room_back(view, cluster, scene)
    if view.placement is None:
        return [*actions, *_set_free(view, scene), *_delete_record(view, scene)]
    return actions + (_write_record(view, cluster, scene) if view.record is not None else [])


def _set_free(view: GangView, scene: Scene) -> Iterator[Action]:
    """Release the gated pods to whatever node kube-scheduler finds."""
    for pod in scene.cache.members(view.key, view.cluster_uid):
        if pod.gated and pod.alive and pod.raw is not None and _free_to_act(view, pod, scene):
            view.inflight.add(pod.uid)
            yield ReleasePod(view.key, pod.raw, "")


def _delete_record(view: GangView, scene: Scene) -> Iterator[Action]:
    record = scene.cache.gangs.get(view.key)
    if record is not None:
        yield from _clear_away(view, record, scene)

"""Builds the view of a gang from its Gang object and the pins of its pods."""

from coordinator.gang import ending
from coordinator.gang.eviction.endings import Evicted, endings_recorded, reason_recorded
from coordinator.gang.held_start.phases import Waiting
from coordinator.gang.held_start.start import HeldStart, held_recorded
from coordinator.gang.pods import adoption
from coordinator.gang.pods.nominating import PlannedTo
from coordinator.gang.setbacks.below_minimum import breaks_recorded
from coordinator.gang.setbacks.late_starts import late_starts_recorded
from coordinator.gang.setbacks.refused_releases import refused_releases_recorded
from coordinator.gang.terms import Understood
from coordinator.gang.together import set_recorded
from coordinator.gang.view import GangView
from coordinator.queues.history import began
from coordinator.reconcile.look import Scene
from coordinator.reconcile.pod_writes.fences import fence_token
from coordinator.reconcile.record.events import adopt_events
from coordinator.reconcile.record.recording import read_record
from coordinator.reconcile.status.conditions import EVICTED
from coordinator.reconcile.surveying import any_on_node
from coordinator.record.spec import is_of
from coordinator.record.urgency import RUNNING
from kube.codec.fields import InvalidObject, moment_of
from kube.codec.observed_pod import ObservedPod
from kube.codec.placement import placement_from_status
from kube.gang.source import GangSource
from kube.objects.gang import Gang
from kube.objects.ray import RayJob, RayOwner
from kube.ray.ray_cluster import is_terminating
from kube.ray.ray_owner import is_suspended_by_muster
from reservation.edits import placement_from_nominations, placement_from_pins
from reservation.slots import slots_of, vacant_slots
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement
from scheduling.model.queue import DEFAULT_QUEUE

FIRST_GENERATION = 1


def open_view(key: GangKey, source: GangSource, scene: Scene) -> GangView:
    """Begin a view with what the record says; the pins tell where there is no record.

    Whatever an earlier leader released or may still be releasing is taken as it stands: its
    placement is adopted, and the pods that are still gated are fenced before anything else. The
    recorded plan stands, or what nominations tell of it, until the first cycle says what it is.
    """
    view = GangView(key=key, cluster_uid=source.metadata.uid, since=scene.moment.now)
    gang = scene.cache.gangs.get(key)
    if gang is not None and is_of(gang, view.cluster_uid):
        _adopt(view, gang)
        adopt_events(view, scene.moment.now)
    _adopt_hold(view, source, gang)
    view.survey.ran &= source.dispatched is None  # else what ran was elsewhere
    pods = scene.cache.members(key, view.cluster_uid)
    if view.reservation.placement is None:
        _adopt_pins(view, source, pods)
    if not scene.decided:
        view.queueing.planned = _planned(view) or placement_from_nominations(pods)
        nominated = frozenset(pod.nominated_to for pod in pods) - {""}
        view.nominating.planned_to = PlannedTo(nominated)
    view.eviction.begun = _has_begun(view, scene.cache.owners.owner_of(source), pods)
    _adopt_provisioned(view, source, pods)
    _fence_inherited(view, pods, scene)
    return view


def _adopt(view: GangView, gang: Gang) -> None:
    read_record(view.record, gang)
    view.reservation.decided = gang.status.decided
    view.reservation.closed = gang.status.dispatch_after
    view.survey.ran = gang.status.phase == RUNNING
    _adopt_endings(view, gang)
    if gang.status.placement is None:
        view.reservation.queue = gang.spec.queue  # of pods that Muster did not place
        return
    view.reservation.queue = gang.status.placement.queue or DEFAULT_QUEUE
    try:
        placement = placement_from_status(gang.status.placement)
    except InvalidObject:
        return  # edited by hand; what was released is rebuilt from the pins
    view.reservation.placement = placement if slots_of(placement) else None
    view.reservation.together = set_recorded(gang.status.together)
    view.reservation.epoch = gang.status.placement.epoch


def _planned(view: GangView) -> Placement | None:
    """Read where an earlier leader would have placed the gang, once others have ended."""
    gang = view.record.gang
    if gang is None or gang.status.planned is None:
        return None
    try:
        return placement_from_status(gang.status.planned)
    except InvalidObject:
        return None  # edited by hand


def _adopt_hold(view: GangView, source: GangSource, gang: Gang | None) -> None:
    """Take a RayCluster for held that says so itself, while there is no record that knows better.

    The annotation stays where others resume it, and may be there when they suspend it later: then
    its spec was edited. A record may say nothing because an earlier release wrote it, or the API
    server has the Gangs' definition of one.
    """
    recorded = gang is not None and is_of(gang, view.cluster_uid) and bool(gang.status.phase)
    is_as_created = source.metadata.generation == FIRST_GENERATION
    if recorded and gang is not None and (gang.status.held is not None or not is_as_created):
        view.held = held_recorded(gang.status.held)
    elif source.is_held:
        view.held = HeldStart(Waiting(source.metadata.generation))


def _adopt_endings(view: GangView, gang: Gang) -> None:
    """Go on with what an earlier leader wrote that is to be stopped."""
    view.eviction.endings = endings_recorded(gang.status.evictions)
    view.eviction.told = {(each.preemptor, each.since) for each in view.eviction.endings}
    view.late_starts = late_starts_recorded(gang.status.late_starts, began(view))
    view.refused_releases = refused_releases_recorded(gang.status.refused_releases)
    view.breaks = breaks_recorded(gang.status.breaks)
    view.logged.stopped = set(view.eviction.told)
    for condition in gang.status.conditions:
        if condition.type == EVICTED and view.eviction.whole is None:
            view.eviction.ended = Evicted(reason_recorded(condition.reason), condition.message)


def _has_begun(view: GangView, owner: RayOwner | None, pods: list[ObservedPod]) -> bool:
    """Say whether an end has begun: a pod is gone, or goes, or the RayJob is suspended."""
    placement = view.reservation.placement
    if not view.eviction.endings or placement is None:
        return bool(view.eviction.endings)
    suspended = isinstance(owner, RayJob) and is_suspended_by_muster(owner)
    alive = [pod for pod in pods if pod.alive]
    return suspended or len(alive) < len(pods) or bool(vacant_slots(placement, alive))


def _adopt_pins(view: GangView, source: GangSource, pods: list[ObservedPod]) -> None:
    placement = _pinned(source, pods)
    view.reservation.placement = placement
    if placement is not None:
        view.survey.ran = any(pod.ready for pod in pods)  # it may have; what runs is not given up


def _pinned(source: GangSource, pods: list[ObservedPod]) -> Placement | None:
    """What the pins say; of a RayCluster that is being deleted only what is not bound yet."""
    placement = placement_from_pins(pods)
    if placement is None or not is_terminating(source.metadata):
        return placement
    return ending.on_their_way(placement, pods)


def _adopt_provisioned(view: GangView, source: GangSource, pods: list[ObservedPod]) -> None:
    """Take KubeRay's word that the gang ran, unless some of its pods were not there then."""
    since = moment_of(source.provisioned_since)
    removed = since > 0 and adoption.leaves_out_pods(since, pods)
    # KubeRay never takes its word back, which was about the pods from before.
    view.pod_writes.removed_any = removed or view.eviction.last is not None
    provisioned = source.was_provisioned and not view.pod_writes.removed_any
    view.understood = Understood(provisioned=provisioned)
    view.survey.ran |= provisioned and any_on_node(pods)


def _fence_inherited(view: GangView, pods: list[ObservedPod], scene: Scene) -> None:
    """Have the pods fenced that an earlier leader may be releasing.

    None is where the record says that nothing was ever decided. A record without that may have been
    deleted and made anew, and one with a placement that is not counted is of an older release.
    """
    left = [pod for pod in pods if pod.gated and pod.uid in scene.inherited]
    placed = view.reservation
    if left and (placed.placement or placed.decided or not view.record.written):
        placed.decided = max(1, placed.decided)
        tokens = {pod.uid: fence_token(pod, scene.epoch, 0) for pod in left}
        view.pod_writes.fences = tokens
        view.pod_writes.doubted_since = view.since

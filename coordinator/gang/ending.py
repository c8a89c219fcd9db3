"""Reduces the reservation of a gang whose RayCluster is being deleted, and clears orphaned Gangs.

KubeRay makes no more pods for such a gang, so no slot is kept for one. Bound pods keep what they
use. A pod that was released and is not bound yet may still be bound, so its room stays reserved.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from coordinator.gang.pods.pod_sets import Standing
from coordinator.messages.actions import Action, DeleteGang, WriteGangStatus
from coordinator.record.status import recorded
from kube.codec.observed_pod import ObservedPod
from kube.objects.gang import Gang, GangStatus
from reservation.edits import without_slots
from reservation.slots import is_released, slots_of, vacant_slots
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement
from scheduling.model.verdict import Reason

ORPHAN_DELAY = 10.0
"""Seconds for which a Gang without its RayCluster is left to the garbage collector.

Its RayCluster may also be one that the watch has not told of yet.
"""

_NAMED = 3  # finalizers; there may be many
_SHOWN = 120  # characters of each
_RESERVING = ("placement", "planned")  # the fields of a status for which room is kept


def on_their_way(placement: Placement, pods: Iterable[ObservedPod]) -> Placement | None:
    """Return the slots of released pods; None where all of these pods are bound or gone."""
    taking = [pod for pod in pods if is_released(pod) and (pod.node or pod.alive)]
    if all(pod.node for pod in taking):
        return None
    left = without_slots(placement, vacant_slots(placement, taking))
    return left if slots_of(left) else None


def text(standing: Standing, kind: str) -> str:
    """Say what is left of a gang whose `kind` is being deleted, for people."""
    settled = [pod for each in standing for pod in each.settled]
    bound = sum(bool(pod.node) for pod in settled)
    said = f"the {kind} is being deleted: no pod is released any more, and no slot is kept; "
    said += f"{bound} pod{' is' if bound == 1 else 's are'} still bound"
    late = len(settled) - bound
    return said + (f", {late} released and not bound yet" if late else "")


@dataclass
class Orphans:
    """The Gangs without a RayCluster, and since when (monotonic seconds) each is known as one.

    The garbage collector deletes them, unless their owner reference was removed
    (`--cascade=orphan`) or a finalizer holds them: their room would be reserved for ever.
    """

    _since: dict[GangKey, float] = field(default_factory=dict)

    def forget(self, key: GangKey) -> None:
        """There is a RayCluster, or no Gang any more."""
        self._since.pop(key, None)

    def look(self, key: GangKey, gang: Gang, moment: Moment, epoch: int) -> list[Action]:
        """Say what is to be done about one; `next_look` says when to look again."""
        since = self._since.setdefault(key, moment.now)
        if moment.now < since + ORPHAN_DELAY:
            return []
        self._since[key] = moment.now
        return clear_away(key, gang, epoch)

    def next_look(self, key: GangKey) -> float:
        """When this one is to be looked at again."""
        return self._since[key] + ORPHAN_DELAY

    def clear(self) -> None:
        """Forget all."""
        self._since.clear()


def clear_away(key: GangKey, gang: Gang, epoch: int) -> list[Action]:
    """Delete a Gang that is no record; one that a finalizer holds gives its placement up."""
    meta = gang.metadata
    if meta.deletion_timestamp is None:
        return [DeleteGang(key, meta.uid)]
    if not _reserves(gang.status):
        return []
    return [_write(key, gang, _without_placement(gang, epoch))]


def keep_queue(key: GangKey, gang: Gang, epoch: int) -> list[Action]:
    """Clear the placement in an opted-out gang's record, and keep the queue of its pods there."""
    status = gang.status
    if status.reason == Reason.OPTED_OUT and not _reserves(status):
        return []
    said = _without_placement(gang, epoch)
    told = {
        **{key: value for key, value in said.items() if key != "evictions"},  # it runs on
        "reason": Reason.OPTED_OUT,
        "message": f"opted out: what its pods use counts in queue {gang.spec.queue} until they end",
    }
    return [_write(key, gang, told)]


def _write(key: GangKey, gang: Gang, status: dict[str, object]) -> Action:
    meta, before = gang.metadata, gang.status
    return WriteGangStatus(
        key, meta.uid, meta.resource_version, status, decides=False, before=before
    )


def outlived_by(gang: Gang) -> str:
    """Say why a RayCluster gets no Gang while an earlier one's is there; empty if it soon goes."""
    meta = gang.metadata
    if meta.deletion_timestamp is None:
        return ""
    said = "the Gang of an earlier RayCluster of this name is being deleted"
    if meta.finalizers:
        said += f", and finalizers hold it: {_some(meta.finalizers)}"
    return f"{said}; no pod is released until it is gone"


def _some(finalizers: Sequence[str]) -> str:
    shown = ", ".join(each[:_SHOWN] for each in islice(finalizers, _NAMED))
    more = len(finalizers) - _NAMED
    return shown + (f" and {more} more" if more > 0 else "")


def _reserves(status: GangStatus) -> bool:
    return status.placement is not None or status.planned is not None


def _without_placement(gang: Gang, epoch: int) -> dict[str, object]:
    return {
        **{key: said for key, said in recorded(gang.status).items() if key not in _RESERVING},
        "epoch": epoch,
        "reason": Reason.TERMINATING,
        "message": "the RayCluster is gone, or opted out; a finalizer holds this Gang",
    }

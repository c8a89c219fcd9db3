"""Tells in sentences what was decided on one gang, from the actions that it led to."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import singledispatchmethod
from typing import Any

from coordinator.messages.actions import (
    Action,
    CreateGang,
    DeleteGang,
    DeletePod,
    EvictPod,
    FencePod,
    LogDecision,
    NominatePod,
    ReleasePod,
    ResumeRayCluster,
    ResumeRayJob,
    SuspendRayCluster,
    SuspendRayJob,
    WakeKubeRay,
    WriteGangStatus,
)
from coordinator.reconcile.decisions import GANG_STOPPED, GIVEN_UP, REPAIRS, SURPLUS_STOPPED
from coordinator.replay.seen import counted, listed

_NUMBERS = re.compile(r"\d+")
_TOLD_BY_LOG = (GANG_STOPPED, GIVEN_UP, SURPLUS_STOPPED)  # all else is in what is written


class Done:
    """What was told so far; a status is told by what is new in it."""

    def __init__(self) -> None:
        self._said = ""
        self._placed = ""
        self._kept: dict[str, int] = {}
        self._grouped: defaultdict[str, list[str]] = defaultdict(list)
        self.places: set[str] = set()
        """The nodes of the placement."""

    def tell(self, actions: Iterable[Action]) -> Iterator[str]:
        """Tell of one step; pods of which the same was decided share a line."""
        for action in actions:
            yield from self._of(action)
        for what, names in self._grouped.items():
            yield f"{what}: {listed(names)}"
        self._grouped.clear()

    @singledispatchmethod
    def _of(self, _action: Action) -> Iterator[str]:
        """Tell of one; of what has no sentence here there is nothing to tell."""
        yield from ()

    # --- the Gang -------------------------------------------------------------------------

    @_of.register
    def _create(self, action: CreateGang) -> Iterator[str]:
        spec = action.body.get("spec", {})
        sets = [
            f"{each.get('minimum', 0)} of {each.get('count', 0)} {each['name']}"
            for each in spec.get("podSets", ())
        ]
        queue = spec.get("queue") or "default"
        yield f"understood as a gang of queue {queue}; to start it needs {', '.join(sets)}"

    @_of.register
    def _delete(self, _action: DeleteGang) -> Iterator[str]:
        yield "the Gang is deleted"

    @_of.register
    def _status(self, action: WriteGangStatus) -> Iterator[str]:
        status = action.status
        said = f"{_standing(status)}: {status.get('message', '')}"
        if _without_numbers(said) != _without_numbers(self._said):
            yield said
        self._said = said
        yield from self._placement(status.get("placement"))
        yield from self._slots(status.get("podSets", ()))

    def _placement(self, placement: Mapping[str, Any] | None) -> Iterator[str]:
        sets = placement.get("podSets", ()) if placement is not None else ()
        placed = "; ".join(f"{each['name']}: {_nodes(each)}" for each in sets)
        if placed and placed != self._placed:
            yield f"placed {placed}"
        elif self._placed and not placed:
            yield "the placement is given back"
        self._placed = placed
        self.places = {
            node for each in sets for part in each["assignments"] for node in part["nodes"]
        }

    def _slots(self, pod_sets: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        for each in pod_sets:
            name, kept = each["name"], each.get("kept", 0)
            before, self._kept[name] = self._kept.get(name, 0), kept
            if kept > before:
                yield f"{counted(kept, 'slot')} of {name} kept for lost pods"
            elif kept < before:
                yield f"{counted(before - kept, 'slot')} of {name} no longer kept"

    # --- pods -----------------------------------------------------------------------------

    @_of.register
    def _release(self, action: ReleasePod) -> Iterator[str]:
        where = f"released to {action.node}" if action.node else "released, to any node"
        yield from self._group(where, action.pod.metadata.name)

    @_of.register
    def _fence(self, action: FencePod) -> Iterator[str]:
        what = "fenced, so that no release of before can arrive late"
        yield from self._group(what, action.pod.metadata.name)

    @_of.register
    def _nominate(self, action: NominatePod) -> Iterator[str]:
        what = f"nominated to {action.node}" if action.node else "nomination taken back"
        yield from self._group(what, action.pod.metadata.name)

    @_of.register
    def _delete_pod(self, action: DeletePod) -> Iterator[str]:
        yield from self._group(f"deleted ({REPAIRS.get(action.why, action.why)})", action.name)

    @_of.register
    def _evict(self, action: EvictPod) -> Iterator[str]:
        yield from self._group("evicted", action.name)

    def _group(self, what: str, name: str) -> Iterator[str]:
        self._grouped[what].append(name)
        yield from ()

    # --- what the gang is of --------------------------------------------------------------

    @_of.register
    def _suspend_job(self, action: SuspendRayJob) -> Iterator[str]:
        yield f"RayJob {action.job.metadata.name} is suspended for {action.suspended_for}"

    @_of.register
    def _resume_job(self, action: ResumeRayJob) -> Iterator[str]:
        yield f"RayJob {action.job.metadata.name} is resumed"

    @_of.register
    def _resume(self, _action: ResumeRayCluster) -> Iterator[str]:
        yield "the RayCluster is resumed, so that its pods are created"

    @_of.register
    def _suspend(self, _action: SuspendRayCluster) -> Iterator[str]:
        yield "the RayCluster is suspended again"

    @_of.register
    def _wake(self, _action: WakeKubeRay) -> Iterator[str]:
        yield "KubeRay is made to look at the RayCluster again, for pods do not come"

    @_of.register
    def _log(self, action: LogDecision) -> Iterator[str]:
        if action.what in _TOLD_BY_LOG:
            yield f"{action.what}, {action.reason}: {action.message}"


def _standing(status: Mapping[str, Any]) -> str:
    """Say where a gang stands and why, in a word each; once where both are the same."""
    words = (str(status.get("phase", "")), str(status.get("reason", "")))
    return ", ".join(dict.fromkeys(each for each in words if each))


def _nodes(pod_set: Mapping[str, Any]) -> str:
    counts: defaultdict[str, int] = defaultdict(int)
    for each in pod_set["assignments"]:
        for node, count in each["nodes"].items():
            counts[node] += count
    return listed(f"{count} on {node}" for node, count in sorted(counts.items()))


def _without_numbers(said: str) -> str:
    """Return a message without what only moves in it while a gang waits."""
    return _NUMBERS.sub("", said)

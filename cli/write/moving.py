"""Submits a plan of moves to the coordinator, and reports what becomes of it.

All evictions are tried by dry run first, with the rights of the caller, and held against the
disruption budgets together. Then the plan is written into the Gang that waits, and the Gangs are
read until all have their place, or it is known that they come to none.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from cli.endings import Absent, NotAllowed, StandsInTheWay
from cli.forecast.move_request import MoveRequest
from cli.report.forecast.defrag import MovedReport, PlacedReport
from cli.write.managing import worded
from cli.write.writer import Writer
from coordinator.gang.eviction.budgets import objections
from kube.api.resources import BUDGETS, GANGS, PODS
from kube.codec.budget import budget_of
from kube.codec.observed_pod import ObservedPod
from kube.objects.gang import Gang, GangPlacement
from kube.objects.policy import PodDisruptionBudget
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason

SECONDS: Final = 600.0
"""For which room is kept, and that is waited."""
TAKEN_UP: Final = 60.0
"""Within which the coordinator says that it begins."""
PAUSE: Final = 1.0
PATH: Final = "/status/moves"
STOPPED, MOVED, STARTED, GONE = "stopped", "runs again", "started", "gone"

Say = Callable[[MovedReport], None]
Clock = Callable[[], float]


async def carry_out(
    writer: Writer, request: MoveRequest, say: Say, seconds: float = SECONDS
) -> tuple[MovedReport, ...]:
    """Carry a plan out; raises StandsInTheWay with what was done, and how to go on."""
    if request.refused:
        raise StandsInTheWay(f"{request.refused}; nothing was done")
    await _try_evictions(writer, request)
    await _hold_against_budgets(writer, request)
    await _ask(writer, request, seconds)
    following = _Following(writer, request, say, time.monotonic())
    try:
        await following.until_over(seconds)
    finally:
        if following.may_be_taken_back:
            await _take_back(writer, request)
    return tuple(following.done)


async def _try_evictions(writer: Writer, request: MoveRequest) -> None:
    for key, pods in request.pods.items():
        for pod in pods:
            failed = await writer.try_eviction(PODS, pod.namespace, pod.name)
            if failed is not None:
                why = worded(failed.why, PODS, pod.namespace)
                raise StandsInTheWay(
                    f"pod {pod.name} of {key} cannot be evicted: {why}; nothing was done"
                )


async def _hold_against_budgets(writer: Writer, request: MoveRequest) -> None:
    """Raise StandsInTheWay where a budget lets each pod go, and not all."""
    for namespace in sorted({key.namespace for key in request.pods}):
        try:
            found = await writer.reader.list(BUDGETS, PodDisruptionBudget, namespace=namespace)
        except NotAllowed:
            continue  # the coordinator reads them, and tries no eviction that is one too many
        budgets = map(budget_of, found)
        mine = {
            k: list[ObservedPod](v) for k, v in request.pods.items() if k.namespace == namespace
        }
        for key, objection in objections(budgets, mine, ()).items():
            raise StandsInTheWay(f"{key} cannot be moved: {objection.because}; nothing was done")


async def _ask(writer: Writer, request: MoveRequest, seconds: float) -> None:
    moves = request.until(time.time() + seconds)
    failed = await writer.json_patch(_path(request), [_same(request), _op("add", moves)])
    if failed is not None:
        why = worded(failed.why, GANGS, request.gang.namespace)
        raise StandsInTheWay(f"Gang {request.gang} was not asked to start: {why}; nothing was done")
    gang = await _gang(writer, request.gang)
    if gang is not None and gang.status.moves is None:
        raise StandsInTheWay(
            "the definition of Gang is of another release, and keeps no moves: kubectl apply -k "
            "manifests/crds; nothing was done"
        )


async def _take_back(writer: Writer, request: MoveRequest) -> None:
    await writer.json_patch(_path(request), [_same(request), {"op": "remove", "path": PATH}])


def _path(request: MoveRequest) -> str:
    return GANGS.path(request.gang.namespace, request.gang.name, "status")


def _same(request: MoveRequest) -> dict[str, Any]:
    return {"op": "test", "path": "/metadata/uid", "value": request.uid}


def _op(what: str, value: object) -> dict[str, Any]:
    return {"op": what, "path": PATH, "value": value}


async def _gang(writer: Writer, key: GangKey) -> Gang | None:
    return await writer.reader.get(GANGS, Gang, key.name, key.namespace)


@dataclass
class _Following:
    """What is seen of a plan that is carried out."""

    writer: Writer
    request: MoveRequest
    say: Say
    began: float
    done: list[MovedReport] = field(default_factory=list)
    is_taken_up: bool = False

    @property
    def may_be_taken_back(self) -> bool:
        """Say whether nothing is on its way for which room is to be kept."""
        return not self.done or self._is_over

    @property
    def _is_over(self) -> bool:
        over = self._became(MOVED) | self._became(GONE)
        return self.request.decided.keys() <= over and self.request.gang in self._became(STARTED)

    async def until_over(self, seconds: float) -> None:
        """Read the Gangs until all have their place; raises StandsInTheWay."""
        while not self._is_over:
            await self._look()
            waited = time.monotonic() - self.began
            if not self._is_over and waited > seconds:
                raise StandsInTheWay(self._late())
            await asyncio.sleep(0 if self._is_over else PAUSE)

    async def _look(self) -> None:
        found = {key: await _gang(self.writer, key) for key in self.request.decided}
        for key, gang in found.items():
            became = _became(gang, self.request.decided[key])
            if became == MOVED:  # between two looks it may have been stopped and placed
                self._note(key, STOPPED, gang)
            self._note(key, became, gang)
        gang = await _gang(self.writer, self.request.gang)
        if gang is None or gang.metadata.uid != self.request.uid:
            raise Absent(f"Gang {self.request.gang} is gone{self._so_far()}")
        if gang.status.placement is not None:
            self._note(self.request.gang, STARTED, gang)
        self._check(gang)

    def _check(self, gang: Gang) -> None:
        """Raise StandsInTheWay where the coordinator does not begin, or does no longer."""
        if self.done:
            return
        waits = gang.status.reason == Reason.PREEMPTING
        late = time.monotonic() - self.began > TAKEN_UP
        if (self.is_taken_up or late) and not waits:
            raise StandsInTheWay(
                f"the coordinator moved nothing: something of the plan changed, or an eviction is "
                f"refused (muster why {self.request.gang}); nothing was done"
            )
        self.is_taken_up |= waits

    def _note(self, key: GangKey, became: str, gang: Gang | None) -> None:
        if not became or key in self._became(became):
            return
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        placed = gang.status.placement if gang is not None and became != STOPPED else None
        found = MovedReport(key.namespace, key.name, became, at, tuple(_nodes(placed)))
        self.done.append(found)
        self.say(found)

    def _became(self, what: str) -> set[GangKey]:
        return {GangKey(e.namespace, e.name) for e in self.done if e.became == what}

    def _late(self) -> str:
        left = self.request.decided.keys() - self._became(MOVED) - self._became(GONE)
        names = ", ".join(sorted(map(str, left))) or "none"
        return (
            f"not all is done in time: {self.request.gang} "
            f"{'has started' if self._became(STARTED) else 'waits'}; to come back: {names}"
            f"{self._so_far()}; the queues go on with them in their order (muster status)"
        )

    def _so_far(self) -> str:
        said = ", ".join(f"{each.namespace}/{each.name} {each.became}" for each in self.done)
        return f"; done: {said}" if said else "; nothing was done"


def _became(gang: Gang | None, decided: int) -> str:
    """Say what became of a gang that is to move; nothing while it runs where it did."""
    if gang is None:
        return GONE
    status = gang.status
    if status.decided > decided and status.placement is not None:
        return MOVED
    return STOPPED if status.evictions or status.placement is None else ""


def _nodes(placed: GangPlacement | None) -> Iterator[PlacedReport]:
    pods: dict[str, int] = {}
    for pod_set in placed.pod_sets if placed is not None else ():
        for each in pod_set.assignments:
            for node, count in each.nodes.items():
                pods[node] = pods.get(node, 0) + count
    yield from (PlacedReport(node, count) for node, count in sorted(pods.items()))

"""Turns a plan of moves into the request that the coordinator reads. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator.gang.eviction.stop_method import Suspend
from coordinator.reconcile.eviction_dry_run import eviction_method
from coordinator.reconcile.status.placement import places_json
from coordinator.state.known import Known
from forecast.estimates import stamp
from kube.codec.observed_pod import ObservedPod
from scheduling.defragmentation.moves import Move, Moves
from scheduling.model.gang import GangKey

Json = dict[str, Any]

TOGETHER = "it starts together with others, whose room cannot be kept"
TRIES = "it is of a RayJob, which gets another RayCluster: its room cannot be kept"


@dataclass(frozen=True, slots=True)
class MoveRequest:
    """What is asked for: `status.moves` of the Gang with this `uid`, but for its end.

    `decided` is what the Gangs said that are to move, `pods` what ends of them; `refused` is why it
    cannot be asked for.
    """

    gang: GangKey
    uid: str
    moves: Json
    decided: dict[GangKey, int]
    pods: Mapping[GangKey, Sequence[ObservedPod]]
    refused: str = ""

    def until(self, wall: float) -> Json:
        """Return it with its end, in seconds since 1970."""
        return {"until": stamp(wall), **self.moves}


def request_of(key: GangKey, found: Moves, known: Known) -> MoveRequest:
    """Return what asks for a plan."""
    gangs = known.cache.gangs
    decided = {each.gang.key: gangs[each.gang.key].status.decided for each in found.moves}
    moved = [
        {
            "namespace": each.gang.key.namespace,
            "name": each.gang.key.name,
            "decided": decided[each.gang.key],
            "placement": places_json(each.to),
        }
        for each in found.moves
    ]
    pods = {each: [pod for pod in known.cache.pods_of(each) if pod.alive] for each in decided}
    return MoveRequest(
        key,
        gangs[key].metadata.uid,
        {"placement": places_json(found.start), "gangs": moved},
        decided,
        pods,
        _refused(key, found.moves, known),
    )


def _refused(key: GangKey, moves: tuple[Move, ...], known: Known) -> str:
    if known.cache.together.of(key) is not None:
        return f"{key}: {TOGETHER}"
    for each in moves:
        source, queue = known.cache.sources[each.gang.key], each.gang.parts[0].queue
        method = eviction_method(known.cache, known.queues, source, queue)
        if isinstance(method, Suspend):
            return f"{each.gang.key}: {TRIES}; suspend and resume the RayJob in its place"
    return ""

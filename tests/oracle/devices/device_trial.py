"""Compares Muster's answer for a gang with claims with what kube-scheduler allocates.

A yes is released in its waves and pinned, pods of other gangs at moments of their own: every pod
must be bound to its node. It is done again with the pods created in other orders, in which
kube-scheduler then takes them. After a no the gang is released unpinned: where kube-scheduler binds
it whole, beside the pods of others, the no was wrong.
"""

from collections.abc import Iterator, Sequence, Set
from functools import partial
from random import Random

from scheduling.model.verdict import Reason
from tests.oracle.devices.device_question import ask_for_devices
from tests.oracle.devices.device_worlds import (
    FOREIGN,
    DeviceWorld,
    device_world,
    is_foreign,
    on_the_way,
)
from tests.oracle.model import Json, World, name_of, node_of
from tests.oracle.question import Yes
from tests.oracle.stage import Stage
from tests.oracle.tally import ADMITTED, Outcome
from tests.oracle.trial import are_bound

TURNS = 2
"""So often is a yes tried where kube-scheduler could take its pods in several orders."""

_FAILING = "selector"
"""Muster refuses a node on which a selector fails, kube-scheduler only if its search gets there."""


def try_device_case(stage: Stage, slot: str, seed: str) -> Outcome:
    """Try the world of one seed in a slot of its own."""
    outcome = _try_turn(stage, slot, seed, 1)
    for turn in range(2, TURNS + 1):
        if outcome.answer != ADMITTED or outcome.unsound:
            break
        again = _try_turn(stage, slot, seed, turn)
        if again.answer != ADMITTED:
            again.unsound.append(f"{again.answer} where only the order of objects is another")
        outcome.unsound += [f"turn {turn}: {each}" for each in again.unsound]
        outcome.unanswered += again.unanswered
    return outcome


def _try_turn(stage: Stage, slot: str, seed: str, turn: int) -> Outcome:
    drawn = device_world(slot, seed, turn)
    stored = _with_claims(stage, stage.raise_world(drawn.world))
    answer = ask_for_devices(stored, stage.namespaces(stored))
    if isinstance(answer, Yes):
        outcome = Outcome(seed, ADMITTED, drawn.present, possible=True, waves=len(answer.waves))
        _try_pinned(stage, stored, answer, outcome, Random(f"{seed}/{turn}/moments"))
    else:
        outcome = Outcome(seed, str(answer.reason), drawn.present)
        _try_alone(stage, stored, outcome)
        if outcome.alone and _speaks(answer.reason, answer.message, drawn):
            outcome.missed.append(f"{answer.reason}: {answer.message}")
    stage.clear(stored)
    return outcome


def _speaks(reason: Reason, message: str, drawn: DeviceWorld) -> bool:
    """Say whether the answer is that there is no way, or that none is known."""
    fails = "lacking attribute" in drawn.present and _FAILING in message
    return reason != Reason.UNSUPPORTED and not fails


def _with_claims(stage: Stage, stored: World) -> World:
    """Wait until the claims of all pods are made; return the world with them."""
    pods = stage.settled(stored, lambda seen: all(map(_has_claims, seen)))
    namespace = stored.namespaces[0]
    of_pods = {name_of(pod) for pod in pods}
    made = [
        {**each, "kind": "ResourceClaim"}
        for each in stage.claims(namespace)
        if {owner["name"] for owner in each["metadata"].get("ownerReferences", ())} & of_pods
    ]
    return World(stored.slot, stored.nodes, [], pods, [*stored.objects, *made])


def _has_claims(pod: Json) -> bool:
    asked = pod["spec"].get("resourceClaims", [])
    made = {each["name"] for each in pod["status"].get("resourceClaimStatuses", [])}
    return all("resourceClaimName" in each or each["name"] in made for each in asked)


def _try_pinned(
    stage: Stage, stored: World, answer: Yes, outcome: Outcome, moments: Random
) -> None:
    """Release as told, those of others before, with or after a wave; all must be bound."""
    others = [pod for pod in stored.gang if is_foreign(pod)]
    wanted = {name_of(pod): node for pod, node in answer.pods}
    promised = on_the_way(answer.pods, stored)
    wanted |= {name_of(pod): pod["metadata"]["labels"][FOREIGN] for pod in promised}
    batches = list(_batches(answer))
    due = [moments.randint(0, len(batches)) for _ in others]
    awaited: set[str] = set()
    pods: Sequence[Json] = stored.gang
    for at, wave in enumerate((*batches, [])):
        coming = [pod for pod, when in zip(others, due, strict=True) if when == at]
        batch = [*wave, *((pod, pod["metadata"]["labels"][FOREIGN]) for pod in coming)]
        moments.shuffle(batch)
        stage.release(batch)
        awaited |= {name_of(pod) for pod, _ in wave}
        final = set(wanted) if at == len(batches) else awaited
        pods = stage.settled(stored, partial(_are_decided, final))
        if not are_bound(awaited, pods):
            break
    where = {name_of(pod): node_of(pod) for pod in pods if name_of(pod) in wanted}
    if where != wanted:
        words = {name_of(pod): _refusal(pod) for pod in pods if not where.get(name_of(pod), "-")}
        told = outcome.unsound if any(words.values()) else outcome.unanswered
        waves = [[name_of(pod) for pod, _ in wave] for wave in answer.waves]
        told.append(f"waves {waves}, told {wanted}, bound {where}: {words}")


def _batches(answer: Yes) -> Iterator[list[tuple[Json, str]]]:
    """Give the waves; of pods that share a claim one goes first, the rest once it is bound."""
    for wave in answer.waves:
        first: list[tuple[Json, str]] = []
        late: list[tuple[Json, str]] = []
        begun: set[str] = set()
        for pod, node in wave:
            asked = pod["spec"].get("resourceClaims", [])
            named = {each["resourceClaimName"] for each in asked if "resourceClaimName" in each}
            (late if named & begun else first).append((pod, node))
            begun |= named
        yield first
        if late:
            yield late


def _try_alone(stage: Stage, stored: World, outcome: Outcome) -> None:
    """Release the gang unpinned, and those of others to their nodes."""
    stage.release((pod, pod["metadata"]["labels"].get(FOREIGN, "")) for pod in stored.gang)
    names = {name_of(pod) for pod in stored.gang}
    pods = stage.settled(stored, partial(_all_are_decided, names))
    outcome.alone = all(map(node_of, pods))
    outcome.possible = True if outcome.alone else None
    if not all(node_of(pod) or _refusal(pod) for pod in pods):
        outcome.unanswered.append("released unpinned")


def _are_decided(awaited: Set[str], pods: Sequence[Json]) -> bool:
    """Say whether all are bound, or one is refused: devices never come free again here."""
    of_wave = [pod for pod in pods if name_of(pod) in awaited]
    return are_bound(awaited, pods) or any(map(_refusal, of_wave))


def _all_are_decided(awaited: Set[str], pods: Sequence[Json]) -> bool:
    return all(node_of(pod) or _refusal(pod) for pod in pods if name_of(pod) in awaited)


def _refusal(pod: Json) -> str:
    """Say why kube-scheduler does not bind the pod; "" where it did not say."""
    for each in pod["status"].get("conditions", []):
        refused = each["status"] == "False" and each.get("reason") != "SchedulingGated"
        if each["type"] == "PodScheduled" and refused and not node_of(pod):
            return f"{each.get('reason')}: {each.get('message', '')}"
    return ""

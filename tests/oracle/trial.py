"""Compares Muster's answer with kube-scheduler and with trying everything.

A yes is released as the product does it, wave by wave, head first and pinned, and every pod must be
bound to its node. After a no the gang is released unpinned, for kube-scheduler to place pod by pod,
and everything is tried: where either finds a way the no was wrong. What kube-scheduler does
unpinned is also held against the oracle's own judgement, so that this can be believed where the pin
keeps kube-scheduler from judging: every pod that it bound must be accepted, every pod that it did
not bind refused on every node.

Of the gangs that the coordinator may nominate every other one is nominated whole before its first
release, which must not turn the answer either.
"""

import zlib
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import partial

from scheduling.model.verdict import Reason
from tests.oracle.ingredients import INGREDIENTS
from tests.oracle.judge import accepts, faults, with_pod
from tests.oracle.model import Bound, Json, Scene, World, name_of, node_of, scene
from tests.oracle.question import Yes, ask
from tests.oracle.search import holds, possible, safe
from tests.oracle.stage import Stage, is_refused
from tests.oracle.tally import ADMITTED, Outcome
from tests.oracle.worlds import Drawn, world

TRIES = 3000
"""How many states a search through everything may visit before it is left undone."""


def try_case(stage: Stage, slot: str, seed: str) -> Outcome:
    """Try the world of one seed in a slot of its own."""
    drawn = world(slot, seed)
    stored = stage.raise_world(drawn.world)
    answer = ask(stored, stage.namespaces(stored))
    if isinstance(answer, Yes):
        outcome = Outcome(seed, ADMITTED, drawn.present, possible=True)
        _try_pinned(stage, stored, answer, outcome)
    else:
        outcome = Outcome(seed, str(answer.reason), drawn.present)
        _try_alone(stage, stored, outcome)
        _try_everything(scene(stored), stored.gang, outcome)
        if outcome.possible and answer.reason != Reason.UNSUPPORTED:
            outcome.missed.append(f"{answer.reason}: {answer.message}")
            outcome.safe = safe(scene(stored), stored.gang, TRIES)
    stage.clear(stored)
    if isinstance(answer, Yes) and _hides_something(drawn):
        stored = stage.raise_world(world(slot, seed, turn=2).world)
        _try_alone(stage, stored, outcome)
        stage.clear(stored)
    return outcome


def _hides_something(drawn: Drawn) -> bool:
    """Say whether the pin keeps kube-scheduler from judging something in this world."""
    return any(each.hidden_by_pin and each.name in drawn.present for each in INGREDIENTS)


def _try_pinned(stage: Stage, stored: World, answer: Yes, outcome: Outcome) -> None:
    """Release as told; every pod must get onto its node."""
    nodes = {name_of(node): node for node in stored.nodes}
    before = scene(stored)
    outcome.unsound += faults([(pod, nodes[node]) for pod, node in answer.pods], before)
    outcome.waves = len(answer.waves)
    if not holds(before, [[(pod, nodes[node]) for pod, node in wave] for wave in answer.waves]):
        outcome.unsound.append("not every order of binding within its waves succeeds")
    wanted = {name_of(pod): node for pod, node in answer.pods}
    if answer.may_be_nominated and zlib.crc32(outcome.seed.encode()) % 2:
        outcome.nominated = True
        answer = _nominated(stage, answer)
    pods = _in_waves(stage, stored, answer)
    where = {name_of(pod): node_of(pod) for pod in pods}
    if all(map(node_of, pods)) or any(map(is_refused, pods)):
        outcome.unsound += [f"told {wanted}, bound {where}"] if where != wanted else []
    else:
        outcome.unanswered.append(f"told {wanted}, bound {where}")
    outcome.deciders = frozenset(_permitting(before, stored.gang, outcome.present))


def _nominated(stage: Stage, answer: Yes) -> Yes:
    """Nominate all pods before the first of them is released."""
    waves = (tuple((stage.nominated(pod, at), at) for pod, at in wave) for wave in answer.waves)
    return replace(answer, waves=tuple(waves))


def _in_waves(stage: Stage, stored: World, answer: Yes) -> list[Json]:
    """Release wave after wave, once all before it are bound; return the pods in the end."""
    awaited: set[str] = set()
    pods = stored.gang
    for wave in answer.waves:
        stage.release(wave)
        awaited |= {name_of(pod) for pod, _ in wave}
        pods = stage.settled(stored, partial(are_bound, awaited))
        if not are_bound(awaited, pods):
            break
    return pods


def are_bound(awaited: Set[str], pods: Sequence[Json]) -> bool:
    """Say whether all that are awaited have a node."""
    return all(node_of(pod) for pod in pods if name_of(pod) in awaited)


def _try_alone(stage: Stage, stored: World, outcome: Outcome) -> None:
    """Release unpinned, and hold what becomes of it against the judgement."""
    before = scene(stored)
    stage.release((pod, "") for pod in stored.gang)
    pods = stage.settled(stored, lambda seen: _is_final(seen, before))
    outcome.alone = all(map(node_of, pods))
    if all(node_of(pod) or is_refused(pod) for pod in pods):
        outcome.judge += faults(_bound(pods, before), before)
        outcome.judge += _left_out(pods, before)
    else:
        outcome.unanswered.append("released unpinned")


def _is_final(pods: Sequence[Json], before: Scene) -> bool:
    """Say whether nothing is expected to change: every pod has a node, or none that takes it."""
    decided = all(node_of(pod) or is_refused(pod) for pod in pods)
    return decided and next(_left_out(pods, before), None) is None


def _left_out(pods: Sequence[Json], before: Scene) -> Iterator[str]:
    """Say which pods are not bound though the judgement says that they could be."""
    now = before
    for pod, node in _bound(pods, before):
        now = with_pod(now, pod, node)
    for pod in pods:
        open_to = [name_of(node) for node in now.nodes if accepts(pod, node, now)]
        sleeps = any(each.may_sleep(pod) for each in INGREDIENTS)
        if open_to and not node_of(pod) and not sleeps:
            yield f"{name_of(pod)} is not bound, though {open_to[0]} should take it"


def _bound(pods: Sequence[Json], before: Scene) -> list[Bound]:
    nodes = {name_of(node): node for node in before.nodes}
    return [(pod, nodes[node_of(pod)]) for pod in pods if node_of(pod)]


def _try_everything(before: Scene, gang: Sequence[Json], outcome: Outcome) -> None:
    """Say whether there was a way after all, and without which constraint there is one."""
    outcome.possible = outcome.alone or possible(before, gang, outcome.present, TRIES)
    if outcome.possible is False:
        present = [each for each in INGREDIENTS if each.name in outcome.present]
        outcome.deciders = frozenset(
            each.name
            for each in present
            if possible(each.without(before), gang, outcome.present, TRIES)
        )


def _permitting(before: Scene, gang: Sequence[Json], present: frozenset[str]) -> Iterator[str]:
    """Name what made the yes possible."""
    for each in INGREDIENTS:
        if each.permits and each.name in present:
            without = possible(each.without(before), gang, present, TRIES)
            if without is False:
                yield each.name

"""Does Muster's answer agree with what kube-scheduler does, and with trying everything?

Each world comes up twice: in the one its gang is released pinned as Muster says, in the other
unpinned, for kube-scheduler to place pod by pod. Three things are required:

- a yes is sound: every pinned pod is bound to its node;
- a yes where kube-scheduler alone places the whole gang;
- a no of a gang of one shape only where trying everything finds no way.

An Undecided where there was a way is no wrong answer, but it is counted and shown.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from scheduling.verdict import Reason, Refusal
from tests.oracle.judge import CONSTRAINTS, Scene, possible
from tests.oracle.question import Yes, ask
from tests.oracle.stage import Stage
from tests.oracle.worlds import Json, World, namespace_labels, world

TRIES = 4000
"""How many states a search through everything may visit before it is left undone."""


@dataclass(frozen=True)
class Disagreement:
    """A case in which Muster was wrong, to be kept as a regression."""

    seed: str
    what: str
    world: World


@dataclass
class Tally:
    """What was found over all cases."""

    cases: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    decided_by: Counter[str] = field(default_factory=Counter)
    stock_placed: int = 0
    searched: int = 0
    possible: int = 0
    unsound: list[Disagreement] = field(default_factory=list)
    incomplete: list[Disagreement] = field(default_factory=list)
    undecided: list[Disagreement] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Say it for people."""
        answers = ", ".join(f"{n} {name}" for name, n in sorted(self.answers.items()))
        decided = ", ".join(f"{n} {name}" for name, n in sorted(self.decided_by.items()))
        return [
            f"{self.cases} cases: {answers}",
            f"{len(self.unsound)} unsound, {len(self.incomplete)} incomplete",
            f"{len(self.undecided)} undecided though possible",
            f"{self.stock_placed} placed whole by kube-scheduler alone",
            f"{self.possible} possible of {self.searched} gangs of one shape searched through",
            f"constraints that decided: {decided or 'none'}",
        ]


@dataclass(frozen=True)
class _Case:
    """The two worlds of a seed, in the end as the API server has stored them."""

    seed: str
    pinned: World
    unpinned: World


def try_wave(stage: Stage, seeds: Sequence[str], tally: Tally) -> None:
    """Try one world per seed, all side by side."""
    cases = [
        _Case(seed, world(f"p{at}", seed), world(f"u{at}", seed)) for at, seed in enumerate(seeds)
    ]
    worlds = [each for case in cases for each in (case.pinned, case.unpinned)]
    stage.raise_worlds(worlds)
    stored = {each.slot: stage.read(each) for each in worlds}
    cases = [_Case(c.seed, stored[c.pinned.slot], stored[c.unpinned.slot]) for c in cases]
    answers = {c.seed: ask(c.pinned, stage.namespaces(c.pinned)) for c in cases}
    admitted = [case for case in cases if isinstance(answers[case.seed], Yes)]
    for case in cases:
        answer = answers[case.seed]
        if isinstance(answer, Yes):
            stage.release(answer.pods)
        stage.release((pod, "") for pod in case.unpinned.gang)
    alone = stage.settled((case.unpinned for case in cases), patient=False)
    pinned = stage.settled((case.pinned for case in admitted), patient=True)
    for case in cases:
        _judge(
            case, answers[case.seed], pinned.get(case.pinned.slot), alone[case.unpinned.slot], tally
        )
    stage.clear(worlds)


def _judge(
    case: _Case,
    answer: Yes | Refusal,
    bound: dict[str, str] | None,
    alone: dict[str, str],
    tally: Tally,
) -> None:
    tally.cases += 1
    tally.answers["Admitted" if isinstance(answer, Yes) else str(answer.reason)] += 1
    tally.stock_placed += all(alone.values())
    scene, way = _scene(case.pinned), None
    if len({pod["metadata"]["labels"]["set"] for pod in case.pinned.gang}) == 1:
        way = possible(scene, case.pinned.gang, TRIES)
        tally.searched += way is not None
        tally.possible += way is True
        tally.decided_by.update(_deciders(scene, case.pinned.gang, way))
    if isinstance(answer, Yes):
        wanted = {pod["metadata"]["name"]: node for pod, node in answer.pods}
        if wanted != bound:
            tally.unsound.append(_wrong(case, f"told {wanted}, bound {bound}"))
        if way is False:
            tally.unsound.append(_wrong(case, f"told {wanted}, trying everything finds no way"))
    elif answer.reason != Reason.UNSUPPORTED and (all(alone.values()) or way):
        seen = f"kube-scheduler bound {alone}, trying everything: {way}"
        missed = tally.undecided if answer.reason == Reason.UNDECIDED else tally.incomplete
        missed.append(_wrong(case, f"{answer.reason}: {answer.message}; {seen}"))


def _wrong(case: _Case, what: str) -> Disagreement:
    return Disagreement(case.seed, what, case.pinned)


def _scene(of: World) -> Scene:
    by_name = {node["metadata"]["name"]: node for node in of.nodes}
    bound = [(pod, by_name[pod["spec"]["nodeName"]]) for pod in of.residents]
    labels = {name: namespace_labels(of.slot, name) for name in of.namespaces}
    return Scene(of.nodes, bound, labels)


def _deciders(scene: Scene, gang: list[Json], way: bool | None) -> Iterable[str]:
    """Name the constraints without which the answer would have been another."""
    if way is not False:
        return
    for name in CONSTRAINTS:
        without = replace(scene, ignored=frozenset((name,)))
        if possible(without, gang, TRIES):
            yield name

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
from tests.oracle.ingredients import INGREDIENTS
from tests.oracle.judge import faults, possible
from tests.oracle.model import Json, Scene, World, name_of, pod_set_of, scene
from tests.oracle.question import Yes, ask
from tests.oracle.stage import Stage
from tests.oracle.worlds import world

TRIES = 4000
"""How many states a search through everything may visit before it is left undone."""


@dataclass(frozen=True)
class Disagreement:
    """A case in which Muster was wrong, to be kept as a regression."""

    seed: str
    what: str


@dataclass
class Tally:
    """What was found over all cases."""

    cases: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
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
        return [
            f"{self.cases} cases: {answers}",
            f"{len(self.unsound)} unsound, {len(self.incomplete)} incomplete",
            f"{len(self.undecided)} undecided though possible",
            f"{self.stock_placed} placed whole by kube-scheduler alone",
            f"{self.possible} possible of {self.searched} gangs of one shape searched through",
            *(
                f"{name}: present in {count}, decided {self.decided_by[name]}"
                for name, count in sorted(self.present.items())
            ),
        ]


@dataclass(frozen=True)
class _Case:
    """The two worlds of a seed, in the end as the API server has stored them."""

    seed: str
    present: frozenset[str]
    pinned: World
    unpinned: World


def try_wave(stage: Stage, seeds: Sequence[str], tally: Tally) -> None:
    """Try one world per seed, all side by side."""
    cases = [_case(at, seed) for at, seed in enumerate(seeds)]
    worlds = [each for case in cases for each in (case.pinned, case.unpinned)]
    stage.raise_worlds(worlds)
    stored = {each.slot: stage.read(each) for each in worlds}
    cases = [
        replace(c, pinned=stored[c.pinned.slot], unpinned=stored[c.unpinned.slot]) for c in cases
    ]
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


def _case(at: int, seed: str) -> _Case:
    pinned, unpinned = world(f"p{at}", seed), world(f"u{at}", seed)
    return _Case(seed, pinned.present, pinned.world, unpinned.world)


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
    tally.present.update(case.present)
    before, way = scene(case.pinned), None
    if len({pod_set_of(pod) for pod in case.pinned.gang}) == 1:
        way = possible(before, case.pinned.gang, TRIES)
        tally.searched += way is not None
        tally.possible += way is True
        tally.decided_by.update(_deciders(before, case.pinned.gang, way))
    if isinstance(answer, Yes):
        wanted = {name_of(pod): node for pod, node in answer.pods}
        nodes = {name_of(node): node for node in case.pinned.nodes}
        wrong = list(faults([(pod, nodes[node]) for pod, node in answer.pods], before))
        if wrong:
            tally.unsound.append(_wrong(case, f"told {wanted}, but {'; '.join(wrong)}"))
        if wanted != bound:
            tally.unsound.append(_wrong(case, f"told {wanted}, bound {bound}"))
        if way is False:
            tally.unsound.append(_wrong(case, f"told {wanted}, trying everything finds no way"))
    elif answer.reason != Reason.UNSUPPORTED and (all(alone.values()) or way):
        seen = f"kube-scheduler bound {alone}, trying everything: {way}"
        missed = tally.undecided if answer.reason == Reason.UNDECIDED else tally.incomplete
        missed.append(_wrong(case, f"{answer.reason}: {answer.message}; {seen}"))


def _wrong(case: _Case, what: str) -> Disagreement:
    return Disagreement(case.seed, what)


def _deciders(before: Scene, gang: list[Json], way: bool | None) -> Iterable[str]:
    """Name the constraints without which the answer would have been another."""
    if way is not False:
        return
    for each in INGREDIENTS:
        without = replace(before, ignored=frozenset((each.name,)))
        if possible(without, gang, TRIES):
            yield each.name

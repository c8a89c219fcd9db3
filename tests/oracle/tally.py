"""Counts the outcomes of all cases, and prints them."""

from collections import Counter
from dataclasses import dataclass, field

from scheduling.model.verdict import Reason
from tests.oracle.ingredients import INGREDIENTS

ADMITTED = "Admitted"


@dataclass
class Outcome:
    """What came of one case; the lists say what was wrong, in words.

    `possible` is whether there is a way to bind the gang: because it was bound, or because trying
    everything found one; None where that took too long. `judge` says where the slow judgement
    and kube-scheduler disagree, `unanswered` where kube-scheduler did not answer in
    time, `safe` whether a gang that was missed can be pinned so that all are bound whichever goes
    first, `waves` in how many waves an admitted one was released, `deciders` are the ingredients
    without which the answer had been another. `nominated`: the gang was before it was released.
    """

    seed: str
    answer: str
    present: frozenset[str]
    possible: bool | None = None
    safe: bool | None = None
    alone: bool | None = None
    waves: int = 0
    nominated: bool = False
    deciders: frozenset[str] = frozenset()
    unsound: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    judge: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)


@dataclass
class Tally:
    """What was found over all cases; an Undecided where there was a way counts as missed."""

    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def cases(self) -> int:
        """How many cases were tried."""
        return len(self.outcomes)

    @property
    def unsound(self) -> list[Outcome]:
        """Cases in which a yes did not hold."""
        return [each for each in self.outcomes if each.unsound]

    @property
    def incomplete(self) -> list[Outcome]:
        """Cases in which a no was wrong."""
        return [o for o in self.outcomes if o.missed and o.answer != Reason.UNDECIDED]

    @property
    def undecided(self) -> list[Outcome]:
        """Cases that were left Undecided though there was a way."""
        return [o for o in self.outcomes if o.missed and o.answer == Reason.UNDECIDED]

    @property
    def misjudged(self) -> list[Outcome]:
        """Cases in which kube-scheduler did other than the oracle's own judgement says."""
        return [each for each in self.outcomes if each.judge]

    @property
    def possible(self) -> list[Outcome]:
        """Cases with a way, and nothing in them that is not modelled."""
        return [o for o in self.outcomes if o.possible and o.answer != Reason.UNSUPPORTED]

    @property
    def delicate(self) -> list[Outcome]:
        """Cases that were missed and in which only one order of binding, or another, succeeds."""
        return [o for o in self.possible if o.missed and o.safe is False]

    def lines(self) -> list[str]:
        """Say it for people."""
        answers = Counter(each.answer for each in self.outcomes)
        admitted = answers[ADMITTED]
        alone = [each.alone for each in self.outcomes if each.alone is not None]
        unsearched = sum(o.possible is None for o in self.outcomes)
        unanswered = sum(bool(o.unanswered) for o in self.outcomes)
        missed = f"missed: {len(self.incomplete)} refused, {len(self.undecided)} Undecided"
        in_any_order = len(self.possible) - len(self.delicate)
        waves = Counter(each.waves for each in self.outcomes if each.waves > 1)
        speed = self.cases / max(self.seconds, 0.001)
        return [
            f"{self.cases} cases in {self.seconds:.0f} s ({speed:.1f} a second)",
            ", ".join(f"{n} {name}" for name, n in sorted(answers.items())),
            f"{len(self.unsound)} unsound, {unanswered} not answered by kube-scheduler in time",
            f"{_of(admitted, in_any_order)} that fit in any order of binding",
            f"{_of(admitted, len(self.possible))} that fit in some order of binding",
            f"{missed}; {len(self.delicate)} for the order of binding alone",
            "released in waves: "
            + (", ".join(f"{n} in {t}" for t, n in sorted(waves.items())) or "0"),
            f"{sum(each.nominated for each in self.outcomes)} nominated before they were released",
            f"{unsearched} refusals not searched through",
            f"{sum(alone)} placed whole by kube-scheduler alone, of {len(alone)} that it was given",
            f"{len(self.misjudged)} in which kube-scheduler and the oracle's judgement differ",
            *self._coverage(),
        ]

    def _coverage(self) -> list[str]:
        present = Counter(name for each in self.outcomes for name in each.present)
        decided = Counter(name for each in self.outcomes for name in each.deciders)
        known = dict.fromkeys(each.name for each in INGREDIENTS)
        names = known if known.keys() & present else sorted(present)
        return [
            f"  {name:20} present in {present[name]:5}, decided {decided[name]:4}" for name in names
        ]

    def wrongs(self) -> list[str]:
        """Say what was wrong where, and how to see it again."""
        return [
            f"--only {each.seed}: {kind}: {what}"
            for each in self.outcomes
            for kind in ("unsound", "missed", "judge", "unanswered")
            for what in getattr(each, kind)
        ]


def _of(some: int, all_of_them: int) -> str:
    return f"{some} admitted of {all_of_them} ({100 * some / max(all_of_them, 1):.2f} %)"

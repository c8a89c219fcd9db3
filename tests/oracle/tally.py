"""What came of all cases, and how is it told?"""

from collections import Counter
from dataclasses import dataclass, field

from scheduling.verdict import Reason
from tests.oracle.ingredients import INGREDIENTS

ADMITTED = "Admitted"


@dataclass
class Outcome:
    """What came of one case; the lists say what was wrong, in words.

    `possible` is whether there is a way to bind the gang: because it was bound, or because trying
    everything found one; None where that took too long. `judge` says where the slow judgement
    and kube-scheduler are not of one mind, `unanswered` where kube-scheduler did not answer in
    time, `deciders` are the ingredients without which the answer had been another.
    """

    seed: str
    answer: str
    present: frozenset[str]
    possible: bool | None = None
    alone: bool | None = None
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

    def completeness(self) -> tuple[int, int]:
        """Return how many gangs were admitted, of those that are modelled and possible."""
        possible = [o for o in self.outcomes if o.possible and o.answer != Reason.UNSUPPORTED]
        return sum(o.answer == ADMITTED for o in possible), len(possible)

    def lines(self) -> list[str]:
        """Say it for people."""
        answers = Counter(each.answer for each in self.outcomes)
        admitted, possible = self.completeness()
        alone = [each.alone for each in self.outcomes if each.alone is not None]
        unsearched = sum(o.possible is None for o in self.outcomes)
        unanswered = sum(bool(o.unanswered) for o in self.outcomes)
        speed = self.cases / max(self.seconds, 0.001)
        rate = 100 * admitted / max(possible, 1)
        return [
            f"{self.cases} cases in {self.seconds:.0f} s ({speed:.1f} a second)",
            ", ".join(f"{n} {name}" for name, n in sorted(answers.items())),
            f"{len(self.unsound)} unsound, {unanswered} not answered by kube-scheduler in time",
            f"{admitted} admitted of {possible} possible ({rate:.2f} %)",
            f"{len(self.incomplete)} wrongly refused, {len(self.undecided)} Undecided",
            f"{unsearched} refusals not searched through",
            f"{sum(alone)} placed whole by kube-scheduler alone, of {len(alone)} that it was given",
            f"{len(self.misjudged)} in which kube-scheduler and the oracle's judgement differ",
            *self._coverage(),
        ]

    def _coverage(self) -> list[str]:
        present = Counter(name for each in self.outcomes for name in each.present)
        decided = Counter(name for each in self.outcomes for name in each.deciders)
        return [
            f"  {each.name:20} present in {present[each.name]:5}, decided {decided[each.name]:4}"
            for each in INGREDIENTS
        ]

    def wrongs(self) -> list[str]:
        """Say what was wrong where, and how to see it again."""
        return [
            f"--only {each.seed}: {kind}: {what}"
            for each in self.outcomes
            for kind in ("unsound", "missed", "judge", "unanswered")
            for what in getattr(each, kind)
        ]

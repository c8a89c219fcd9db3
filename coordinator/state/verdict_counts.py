"""Counts the verdicts of cycles: placements, and refusals by reason and by predicate."""

from collections import Counter
from dataclasses import dataclass, field

from scheduling.model.verdict import Refusal

GANG = "gang"
PODS = "pods"


@dataclass(slots=True)
class VerdictCounts:
    """What was decided since the program began.

    `placements` are of whole gangs (GANG), and of surplus or replacements (PODS). A refusal counts
    once, until it has another reason or other predicates; of its predicates each that keeps a pod
    of the gang from at least one node.
    """

    placements: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    predicates: Counter[str] = field(default_factory=Counter)

    def refused(self, before: Refusal | None, now: Refusal) -> None:
        """Count a refusal, unless the one before says the same."""
        said = predicates_of(now)
        if before is None or (before.reason, predicates_of(before)) != (now.reason, said):
            self.refusals[str(now.reason)] += 1
            self.predicates.update(said)


def predicates_of(refusal: Refusal) -> frozenset[str]:
    """Return the predicates that keep a pod of the gang from a node."""
    rejected = (each.rejections for each in refusal.pod_sets)
    return frozenset(name for counts in rejected for name, nodes in counts if nodes)

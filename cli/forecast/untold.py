"""Leaves out of a forecast what is worked out only for readers: moving numbers and reasons.

A real leader writes them anew after each gang that starts or ends, for every gang that waits. In a
forecast no reader sees them, and no decision depends on them.
"""

from collections.abc import Iterable

from coordinator.record.renewals import Renewals
from coordinator.record.write_lines import WriteLine, WriteLines
from coordinator.state.known import Known
from scheduling.model.gang import GangKey


class ClosedLine(WriteLine):
    """A line in which no status comes to its turn."""

    def plan(self, key: GangKey, due: float, *, later: bool) -> None:
        """Leave the status as it is."""


class NoRenewals(Renewals):
    """Decides no gang anew for its numbers alone."""

    def due(self, waiting: Iterable[GangKey], now: float, quiet: float) -> frozenset[GangKey]:  # noqa: ARG002
        """Choose none."""
        return frozenset()

    def next_at(self, now: float, quiet: float) -> float:  # noqa: ARG002
        """Ask for no cycle."""
        return float("inf")


def tell_nobody(known: Known) -> None:
    """Have statuses of waiting gangs not written again while these go on waiting."""
    known.agenda.lines = WriteLines(ClosedLine(1.0, 1.0), ClosedLine(1.0, 1.0))
    known.cycles.renewals = NoRenewals()

"""Leaves statuses of gangs that go on waiting out of a forecast: their numbers and reasons.

A real leader writes them anew after each gang that starts or ends. A forecast has no reader for
them, and no decision depends on them. Phases and placements are written as ever.
"""

from collections.abc import Iterable

from coordinator.record.renewals import Renewals
from coordinator.record.write_lines import WriteLine, WriteLines
from coordinator.state.known import Known
from scheduling.model.gang import GangKey


class ClosedLine(WriteLine):
    """A line that takes no gang in."""

    def plan(self, key: GangKey, due: float, *, later: bool) -> None:
        """Leave the gang out."""


class NoRenewals(Renewals):
    """Decides no gang anew for its numbers alone."""

    def due(self, waiting: Iterable[GangKey], now: float, quiet: float) -> frozenset[GangKey]:  # noqa: ARG002
        """Choose none."""
        return frozenset()

    def next_at(self, now: float, quiet: float) -> float:  # noqa: ARG002
        """Ask for no cycle."""
        return float("inf")


def leave_out_waiting_statuses(known: Known) -> None:
    """Have no status written, and no gang decided anew, only because numbers or reasons moved."""
    known.agenda.lines = WriteLines(ClosedLine(1.0, 1.0), ClosedLine(1.0, 1.0))
    known.cycles.renewals = NoRenewals()

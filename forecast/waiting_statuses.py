"""Leaves out of a forecast the statuses and Events that only explain why gangs wait.

A real leader looks at gangs again after each refusal to write them. A forecast has no reader for
them, and no decision depends on them. Placements and stops are written as ever.
"""

from collections.abc import Iterable
from dataclasses import fields, replace

from coordinator.record.renewals import Renewals
from coordinator.record.write_lines import WriteLine, WriteLines
from coordinator.state.known import Known
from scheduling.model.amounts import Positions
from scheduling.model.gang import GangKey
from scheduling.queueing.refusal_refresh import RefusalRefresh, UndecidedGangs


class ClosedLine(WriteLine):
    """A line that takes no gang in."""

    def plan(self, key: GangKey, due: float, *, later: bool) -> None:
        """Leave the gang out."""


class ClosedLines(WriteLines):
    """The lines of a forecast."""

    are_read = False


class NoRenewals(Renewals):
    """Decides no gang anew for its numbers alone."""

    def due(self, waiting: Iterable[GangKey], now: float, quiet: float) -> frozenset[GangKey]:  # noqa: ARG002
        """Choose none."""
        return frozenset()

    def next_at(self, now: float, quiet: float) -> float:  # noqa: ARG002
        """Ask for no cycle."""
        return float("inf")


class ToldOnce(RefusalRefresh):
    """Tells gangs anew that wait for another reason, and none whose numbers moved."""

    def _versions(self, now: UndecidedGangs) -> Positions:  # noqa: ARG002
        """Return that nothing moved."""
        return self.of_queue


def leave_out_moved_numbers(known: Known) -> None:
    """Refuse no gang anew that waits for the reason it was told of; after the first cycle."""
    memory = known.cycles.memory
    if memory is not None and memory.refresh is not None:
        told = {each.name: getattr(memory.refresh, each.name) for each in fields(memory.refresh)}
        known.cycles.memory = replace(memory, refresh=ToldOnce(**told))


def leave_out_waiting_statuses(known: Known) -> None:
    """Have no status written, and no gang decided anew, only because numbers or reasons moved."""
    known.agenda.lines = ClosedLines(ClosedLine(1.0, 1.0), ClosedLine(1.0, 1.0))
    known.cycles.renewals = NoRenewals()

"""Keeps which GangQueues are due for a write, and how their last writes ended."""

from dataclasses import dataclass, field

from coordinator.gang.attempts import Attempts
from coordinator.messages.actions import QueueAction
from coordinator.queues.census import Census
from coordinator.queues.holes import HoleTurns
from coordinator.queues.selected import SelectedQueues
from coordinator.queues.write_budget import WriteBudget


@dataclass(slots=True)
class QueueWrite:
    """The writes of one GangQueue.

    `sent` is the last one. `outdated` is a version that the API server refused as too old: the
    next write waits for the watch to tell another.
    """

    under_way: bool = False
    sent: QueueAction | None = None
    outdated: str = ""
    attempts: Attempts = field(default_factory=Attempts)


@dataclass
class QueueReports:
    """What is known of the objects of the queues; `due` says when which is to be looked at.

    `turns` has those looked at whose own counts did not change, for the room on nodes may have.
    """

    census: Census = field(default_factory=Census)
    budget: WriteBudget = field(default_factory=WriteBudget)
    due: dict[str, float] = field(default_factory=dict)
    writes: dict[str, QueueWrite] = field(default_factory=dict)
    selected: SelectedQueues = field(default_factory=SelectedQueues)
    turns: HoleTurns = field(default_factory=HoleTurns)

    @property
    def next_at(self) -> float | None:
        """Return when something may be written again; None where nothing is to be."""
        due = max(min(self.due.values()), self.budget.free_at) if self.due else None
        return min((at for at in (due, self.turns.next_at) if at is not None), default=None)

    def write_of(self, name: str) -> QueueWrite:
        """Return the writes of a queue; made on first use."""
        return self.writes.setdefault(name, QueueWrite())

    def ended(self, name: str, now: float, error: str | None, *, outdated: bool) -> None:
        """Note how a write ended."""
        write = self.writes.get(name)
        if write is None:
            return
        write.under_way = False
        self.census.changed.add(name)
        if error is None:
            write.attempts = Attempts()
            return
        sent, write.sent = write.sent, None
        if outdated and sent is not None:
            write.outdated = sent.resource_version
        else:
            write.attempts.failed(now, error)

    def forget(self, name: str) -> None:
        """Drop what is known of a queue that is gone."""
        self.budget.forget(name)
        self.due.pop(name, None)
        self.turns.came.discard(name)
        self.writes.pop(name, None)

    def forget_term(self) -> None:
        """Drop what only a leader has use for; the budget goes on."""
        self.census, self.turns = Census(), HoleTurns()
        self.due.clear()
        self.writes.clear()

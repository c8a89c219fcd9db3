"""Keeps the decisions on a gang that are not in the log yet."""

from collections import Counter
from dataclasses import dataclass, field

from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement


@dataclass(slots=True)
class LoggedDecisions:
    """The leader's notes for the log, of one gang.

    `placed` (node -> pods) is decided and not yet written; `first`: nothing was decided before it.
    `releasing` (uid -> node) are releases that were sent and are in no line yet. `refused` is the
    reason that the log told last; `fenced` (uid -> token) and `deleted` are pods that it told of,
    `stopped` the endings, each by the gang that it is for and its time. `asks_since` is since when
    the gang asks for room for its start, and `written_at` when a placement was last seen written.
    """

    placed: Counter[str] = field(default_factory=Counter)
    first: bool = False
    releasing: dict[str, str] = field(default_factory=dict)
    refused: str = ""
    fenced: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    stopped: set[tuple[GangKey | None, str]] = field(default_factory=set)
    asks_since: float | None = None
    written_at: float | None = None

    def decided(self, placement: Placement, count: int) -> None:
        """Note a placement before it is written, the so-many-th of its gang."""
        self.first = self.first or count == 1
        for each in placement.assignments:
            self.placed.update(dict(each.nodes))

    def forget_pods(self, alive: set[str]) -> None:
        """Drop what is known of pods that are no more."""
        for uid in self.fenced.keys() - alive:
            del self.fenced[uid]
        self.deleted &= alive

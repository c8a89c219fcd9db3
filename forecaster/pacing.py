"""Sets the pause between rounds, so that their CPU stays a small share of a core. Pure."""

from dataclasses import dataclass

WRITING = 0.1
"""Of the CPU of a round: kept for the writes of estimates."""
LEAST = 1.0
"""CPU seconds that a forecast may take, whatever reading the picture took."""
ENDS = 2
"""Of a range: each is a forecast of its own."""
MOST_WITHOUT = 10
"""Rounds in a row that may keep the ranges of an earlier one, where a new one costs too much."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How much CPU there is: a share of a core over time, and seconds of it for one round.

    A round that takes its seconds and no more is followed by another one `round_cpu / share`
    seconds after its begin: no estimate of the first gangs grows older.
    """

    share: float
    rest: float
    round_cpu: float

    def pause(self, used: float) -> float:
        """Return for how long to rest after a round that took so many CPU seconds."""
        return max(self.rest, used * (1 / self.share - 1))

    def left(self, used: float) -> float:
        """Return the CPU seconds of one forecast in a round that has taken `used` of them."""
        return max(LEAST, (1 - WRITING) * self.round_cpu - used)

    def takes_range(self, used: float, one: float, without: int) -> bool:
        """Say whether a round works ranges out, when a forecast took so long from its beginning on.

        It has `used` so much by then, and so many rounds before it went `without`.
        """
        return used + ENDS * one <= self.round_cpu or without >= MOST_WITHOUT

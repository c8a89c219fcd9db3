"""Paces the rounds: so much rest that their CPU stays a small share of a core. Pure."""

from dataclasses import dataclass

BESIDE = 3.0
"""Forecasts of one round: the one that is expected, and the two ends of its range."""
LEAST_SECONDS = 0.2
"""For one forecast at least, however much the picture took: else nothing would be told ever."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How much CPU there is: a share of a core over time, and seconds of it for one round."""

    share: float
    rest: float
    round_cpu: float

    def pause(self, used: float) -> float:
        """Return for how long to rest after a round that took so many CPU seconds."""
        return max(self.rest, used * (1 / self.share - 1))

    def one_forecast(self, used: float) -> float:
        """Return the CPU seconds of one forecast of a round whose picture took so many."""
        return max(LEAST_SECONDS, (self.round_cpu - used) / BESIDE)

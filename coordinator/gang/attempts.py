"""Counts failed attempts at one thing, and schedules the next."""

from dataclasses import dataclass

FIRST_RETRY = 0.05  # seconds; a failed test is mostly a status patch of others, settled at once
LAST_RETRY = 15.0


@dataclass(slots=True)
class Attempts:
    """Failed tries at one thing, and when the next may be made."""

    failures: int = 0
    not_before: float = 0.0
    refusal: str = ""

    def failed(self, now: float, refusal: str) -> None:
        """Double the wait; `refusal` is what the API server said against the very change."""
        self.not_before = now + min(LAST_RETRY, FIRST_RETRY * 2**self.failures)
        self.failures = min(self.failures + 1, 16)
        self.refusal = refusal

"""Says how long to wait after failures in a row, and waits."""

import asyncio
import random
from dataclasses import dataclass

from kube.api.errors import ApiError, KubeError


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait after the n-th failure in a row. Pure: chance is given by the caller."""

    initial: float = 0.8
    maximum: float = 30.0
    factor: float = 2.0
    jitter: float = 1.0
    """The random share of the delay: 1 is anything from nothing to all of it."""

    def delay(self, failures: int, chance: float, retry_after: float | None = None) -> float:
        """Return seconds, never less than `retry_after`; `chance` is uniform in [0, 1)."""
        # The exponent is bounded: 2.0 ** 1100 is an OverflowError after a day of failures.
        full = min(self.maximum, self.initial * self.factor ** min(max(failures, 1) - 1, 64))
        jittered = full * (1 - self.jitter + self.jitter * chance)
        return jittered if retry_after is None else retry_after + chance * self.initial


def retry_after(error: KubeError) -> float | None:
    """Return the seconds the API server asked us to wait, if this error says so."""
    return error.retry_after if isinstance(error, ApiError) else None


async def pause(backoff: Backoff, failures: int, error: KubeError | None = None) -> None:
    """Sleep as the back-off says after this many failures."""
    asked = retry_after(error) if error is not None else None
    # Spreading retries needs no secret chance.
    await asyncio.sleep(backoff.delay(failures, random.random(), asked))  # noqa: S311

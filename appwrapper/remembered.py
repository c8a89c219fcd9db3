"""Caches what was read from AppWrapper specs; one spec may take a tenth of a second to read."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

MOST = 20_000
"""AppWrappers that are remembered. Those that go are not told of here: the oldest make way."""


class Remembered(Generic[T]):
    """What was read last of each AppWrapper, by its uid, and of which state of it."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._read: dict[str, tuple[object, T]] = {}

    def of(self, uid: str, state: object, read: Callable[[], T]) -> T:
        """Return what was read of that very state; it is read where it was not."""
        known = self._read.get(uid)
        if known is None or known[0] != state:
            known = state, read()
            self._read.pop(uid, None)
            self._read[uid] = known
            if len(self._read) > self._most:
                del self._read[next(iter(self._read))]
        return known[1]

"""Caches bounded in bytes, because tenants decide how large the entries are.

Names, labels and selectors come from tenants and may be as large as an object of the API, so a
cache that counts its entries is not bounded at all. These count bytes.
"""

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial, wraps
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from scheduling.model.constraints import NodeNames

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
H = TypeVar("H", bound=Hashable)
R = TypeVar("R")

MIB = 2**20

SHARE = 8
"""A value that takes more than one part in so many of the bytes is not kept: it would drive out the
rest, and the next of its kind would do it again."""

OF_AN_ENTRY = 250
"""Bytes that an entry takes beside its key and value."""

_WHOLE = (str, bytes, int, float, type(None), Enum, NodeNames)
"""What has no parts, or, as names of nodes, parts that are kept elsewhere anyway."""

_FIELDS: dict[type, tuple[str, ...]] = {}


def weight(value: object, most: int = sys.maxsize) -> int:
    """Return about how many bytes a value takes with all that it is made of.

    What two parts share counts twice. Nothing is looked at once there are more than `most`.
    """
    total, left = 0, [value]
    while left and total <= most:
        each = left.pop()
        total += sys.getsizeof(each)
        if not isinstance(each, _WHOLE):
            left += _parts(each)
    return total


def _parts(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [] if value.base is None else [value.base]
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, tuple | list | set | frozenset):
        return [*value]
    return [getattr(value, name) for name in _fields(type(value))]


def _fields(kind: type) -> tuple[str, ...]:
    """Name the fields of a data class; of anything else only its own size counts."""
    known = _FIELDS.get(kind)
    if known is None:
        named = tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()
        known = _FIELDS[kind] = named
    return known


def while_alive(derive: Callable[[R], V]) -> Callable[[R], V]:
    """Have a function work out its answer once for each argument, and keep it as long as that.

    Of equal arguments the first is the one that counts.
    """
    known: WeakKeyDictionary[R, V] = WeakKeyDictionary()

    @wraps(derive)
    def kept(of: R) -> V:
        found = known.get(of)
        if found is None:
            found = known[of] = derive(of)
        return found

    return kept


class BoundedCache(Generic[K, V]):
    """Values by key, up to a number of bytes; the oldest make room for the next."""

    def __init__(
        self,
        limit: int,
        weigh: Callable[[K, V], int] | None = None,
        most: int = sys.maxsize,
    ) -> None:
        """`weigh` says what a key and its value take, where that is known without a look.

        `most` is how many values are kept, however small they are.
        """
        self.limit = limit
        self.most = most
        self.taken = 0
        self._weigh = weigh or self._looked_at
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many values are kept."""
        return len(self._entries)

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield what is kept, with its keys, the oldest first."""
        return ((key, value) for key, (value, _) in self._entries.items())

    def remembered(self, key: K, derive: Callable[[], V]) -> V:
        """Return what is kept for the key, else what `derive` says, which is kept if it may be."""
        found = self._entries.get(key)
        if found is not None:
            return found[0]
        value = derive()
        self.keep(key, value)
        return value

    def keep(self, key: K, value: V) -> bool:
        """Keep a value, in place of an earlier one, unless it is too large.

        False where the value, or the oldest, had to go for lack of space.
        """
        if key in self._entries:
            self.forget(key)
        return self._put(key, value, OF_AN_ENTRY + self._weigh(key, value))

    def _put(self, key: K, value: V, size: int) -> bool:
        if size * SHARE > self.limit:
            return False
        self._entries[key] = value, size
        self.taken += size
        there = len(self._entries)
        while self.taken > self.limit or len(self._entries) > self.most:
            self.taken -= self._entries.popitem(last=False)[1][1]
        return len(self._entries) == there

    def forget(self, key: K) -> None:
        """Give up what is kept for a key; there need not be anything."""
        known = self._entries.pop(key, None)
        if known is not None:
            self.taken -= known[1]

    def clear(self) -> None:
        """Give up all."""
        self._entries.clear()
        self.taken = 0

    def _looked_at(self, key: K, value: V) -> int:
        return weight((key, value), self.limit // SHARE)


class Interned(BoundedCache[H, H]):
    """One copy of many equal values, of those that are small enough."""

    def __init__(self, limit: int, weigh: Callable[[H], int] | None = None) -> None:
        self._weight = weigh or partial(weight, most=limit // SHARE)
        super().__init__(limit, lambda value, _: self._weight(value))

    def __call__(self, value: H) -> H:
        """Return the copy that is kept, which is this one if there was none."""
        found = self._entries.get(value)
        if found is not None:
            return found[0]
        self._put(value, value, OF_AN_ENTRY + self._weight(value))
        return value

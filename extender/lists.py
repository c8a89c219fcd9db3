"""Which nodes does a list of names mean, and where do they stand among those known?

To read 5,000 names and to look each of them up takes longer than to judge a pod. kube-scheduler
asks `prioritize` about just the names that `filter` has left it, in that order; so what is found
out about a list is kept with it, and a list is known again by its text.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import repeat

import msgspec
import numpy as np
import orjson

from scheduling.columns import Positions, Traits

_NAMES = msgspec.json.Decoder(list[str])


class NodeList:
    """Names in the order in which they came; never changed. `text` is the same as JSON."""

    def __init__(
        self, names: Sequence[str], traits: Traits | None = None, at: Positions | None = None
    ) -> None:
        self.names = names
        self._traits = traits
        self._at = at

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeList) and [*self.names] == [*other.names]

    __hash__ = None  # type: ignore[assignment] # as a list has none

    @cached_property
    def text(self) -> bytes:
        """The names as a JSON array, as compact as Go writes it."""
        return orjson.dumps(self.names)

    def at(self, traits: Traits) -> Positions:
        """Where the nodes stand among these; -1 for one that is not among them."""
        if self._at is None or self._traits is not traits:
            self._traits, self._at = traits, places(self.names, traits)
        return self._at


def places(names: Sequence[str], traits: Traits) -> Positions:
    """Where the nodes stand among those known; -1 for one that is not known."""
    found = map(traits.index.get, names, repeat(-1))
    return np.fromiter(found, dtype=np.intp, count=len(names))


def read_names(text: bytes, known: Iterable[NodeList] = ()) -> NodeList:
    """Read a JSON array of names; one of the `known` where the text is the same.

    Raises msgspec.DecodeError for anything else.
    """
    for each in known:
        if each.text == text:
            return each
    found = NodeList(_NAMES.decode(text))
    found.text = text
    return found

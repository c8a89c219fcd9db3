"""Reads a list of node names, and keeps the positions of its nodes with it.

To read 5,000 names and to look each of them up takes longer than to judge a pod. So a long list
stays the text as which it came (`extender.wire.name_table`): an answer is cut out of that text, and
names are decoded only where they are needed.

kube-scheduler asks `prioritize` about just the names that `filter` has left, in that order. So the
lists of the last four answers are remembered (`Extender._lists`) and recognised by their text. They
hold positions and no verdict, so they stay valid whatever happens to pods.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import compress, repeat

import msgspec
import numpy as np
import orjson

from extender.wire.name_table import Names, NameTable, names_in
from scheduling.model.amounts import Mask, Positions
from scheduling.state.node_snapshot import NodeAttributes

LONG = 1 << 15
"""From so many bytes on a list stays text: about a thousand names."""

_NAMES = msgspec.json.Decoder(list[str])


class NodeList:
    """Names in the order in which they came; never changed. `text` is the same as JSON."""

    def __init__(
        self,
        names: Sequence[str] | Names,
        traits: NodeAttributes | None = None,
        at: Positions | None = None,
    ) -> None:
        self._given = names
        self._traits = traits
        self._at = at

    def __len__(self) -> int:
        return len(self._given.starts if isinstance(self._given, Names) else self._given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeList) and [*self.names] == [*other.names]

    __hash__ = None  # type: ignore[assignment] # as a list has none

    @cached_property
    def names(self) -> Sequence[str]:
        """The names themselves."""
        return _NAMES.decode(self.text) if isinstance(self._given, Names) else self._given

    @cached_property
    def text(self) -> bytes:
        """The names as a JSON array, as compact as Go writes it."""
        given = self._given
        return given.text if isinstance(given, Names) else orjson.dumps(given)

    def at(self, traits: NodeAttributes) -> Positions:
        """Return the positions of the nodes among these; -1 for an unknown one."""
        if self._at is None or self._traits is not traits:
            self._traits, self._at = traits, self._found(traits)
        return self._at

    def _found(self, traits: NodeAttributes) -> Positions:
        if isinstance(self._given, Names):
            table = traits.remembered("names by word", lambda: NameTable.of(traits.names))
            return table.find(self._given)
        return places(self._given, traits)

    def picked(self, where: Mask) -> "NodeList":
        """Some of the nodes, in the same order."""
        given, at = self._given, None if self._at is None else self._at[where]
        if isinstance(given, Names) and where.any():
            return NodeList(given.picked(where), self._traits, at)
        return NodeList(list(compress(self.names, where.tolist())), self._traits, at)


def places(names: Sequence[str], traits: NodeAttributes) -> Positions:
    """Return the positions of the nodes among the known ones; -1 for an unknown one."""
    found = map(traits.index.get, names, repeat(-1))
    return np.fromiter(found, dtype=np.intp, count=len(names))


def read_names(text: bytes, known: Iterable[NodeList] = ()) -> NodeList:
    """Read a JSON array of names; one of the `known` where the text is the same.

    Raises msgspec.DecodeError for anything else.
    """
    for each in known:
        if each.text == text:
            return each
    given = names_in(text) if len(text) >= LONG else None
    found = NodeList(_NAMES.decode(text) if given is None else given)
    found.text = text
    return found

"""Finds the names of a long list among the known nodes at once.

One by one, in a dictionary, that is 5,000 looks at strings all over the heap: half a millisecond
while they are in the cache of the processor, and several once kube-scheduler has needed that cache
for itself. So neither list is made into strings here. Names are rows of words of 64 bits that lie
side by side; they are hashed and compared row by row, all at once. A hash only says where to look
first: a name is found where all its words are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from scheduling.model.amounts import Mask, Positions

Words = NDArray[np.uint64]
"""Names by words: each in a row, with zeros behind its end."""

Lengths = NDArray[np.int64]

_WORD: Final = 8
_QUOTE, _COMMA, _CLOSE, _BLANK = b'",] '

_GOLDEN: Final = 0x9E3779B97F4A7C15
"""2^64 by the golden section: the upper bits of its multiples are spread evenly."""

_SPARSE: Final = 4
"""So many slots for a name at least, so that few have to go beyond their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """A JSON array of names as text; `text[starts[i]:ends[i]]` is one of them."""

    text: bytes
    starts: Positions
    ends: Positions

    def picked(self, where: Mask) -> "Names":
        """Return some of them, at least one, in the same order."""
        takes = self.ends - self.starts + 3  # two quotes, and a comma or the bracket at the end
        letters = np.frombuffer(self.text, dtype=np.uint8)[1:]
        kept = letters[np.repeat(where, takes)]
        kept[-1] = _CLOSE
        ends = np.cumsum(takes[where]) - 1
        return Names(b"[" + kept.tobytes(), ends - takes[where] + 3, ends)


def names_in(text: bytes) -> Names | None:
    """Return the names in a compact JSON array; None where that takes a decoder to tell.

    So it does where something is escaped, or is no ASCII, or is no array of strings at all.
    """
    if not (text.startswith(b'["') and text.endswith(b'"]') and text.isascii()) or b"\\" in text:
        return None
    letters = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(letters == _QUOTE)
    if letters.min() < _BLANK or len(quotes) % 2:
        return None
    starts, ends = quotes[::2] + 1, quotes[1::2]
    between = (letters[ends[:-1] + 1] == _COMMA) & (starts[1:] == ends[:-1] + 3)
    return Names(text, starts, ends) if between.all() else None


@dataclass(frozen=True, slots=True, eq=False)
class NameTable:
    """The known names; `slots` says by the hash of a name which one to compare it with.

    Of names that would have one slot each but the first has a later one, by up to `tries`.
    """

    words: Words
    lengths: Lengths
    slots: NDArray[np.int32]
    shift: int
    tries: int

    @classmethod
    def of(cls, names: Sequence[str]) -> "NameTable":
        """Draw up names, of which no two are equal."""
        text = "".join(names).encode()
        lengths = np.array([len(name.encode()) for name in names], dtype=np.int64)
        words = _words(text, np.cumsum(lengths) - lengths, lengths, int(lengths.max(initial=0)))
        bits = (_SPARSE * len(names)).bit_length()
        wanted = _hashed(words, 64 - bits)
        order = np.argsort(wanted, kind="stable")
        step = np.arange(len(names))
        given = np.maximum.accumulate(wanted[order] - step) + step  # each behind the one before it
        tries = int((given - wanted[order]).max(initial=0))
        slots = np.zeros(2**bits + len(names), dtype=np.int32)
        slots[given] = order
        return cls(words, lengths, slots, 64 - bits, tries)

    def find(self, names: Names) -> Positions:
        """Return the position of each name; -1 for an unknown one."""
        lengths = names.ends - names.starts
        if not len(self.words):
            return np.full(len(lengths), -1, dtype=np.intp)
        words = _words(names.text, names.starts, lengths, _WORD * self.words.shape[1])
        slots = _hashed(words, self.shift)
        at = self.slots[slots].astype(np.intp)
        others = np.flatnonzero(self._differ(at, words, lengths))
        for _ in range(self.tries):
            slots[others] += 1
            at[others] = self.slots[slots[others]]
            others = others[self._differ(at[others], words[others], lengths[others])]
        at[others] = -1
        return at

    def _differ(self, at: Positions, words: Words, lengths: Lengths) -> Mask:
        """Say which of the names are not the known ones at these positions."""
        known = self.words[at]
        differ: Mask = self.lengths[at] != lengths
        for each in range(words.shape[1]):
            differ |= known[:, each] != words[:, each]
        return differ


def _words(text: bytes, starts: Positions, lengths: Lengths, longest: int) -> Words:
    """Return parts of a text by words; of a longer part than the longest only the beginning."""
    width = max(-(-longest // _WORD), 1) * _WORD
    windows: NDArray[np.void] = np.ndarray(
        (len(text) + 1,), dtype=f"V{width}", buffer=text + bytes(width), strides=(1,)
    )
    words = windows[starts].view(np.uint64).reshape(-1, width // _WORD)
    least, most = int(lengths.min(initial=width)), int(lengths.max(initial=0))
    words &= _ends(width)[least if least == most else np.minimum(lengths, width)]
    return words


@lru_cache(maxsize=4)
def _ends(width: int) -> Words:
    """Return by the length of a name what of its words is not behind its end."""
    inside = np.arange(width) < np.arange(width + 1)[:, None]
    return (inside * np.uint8(255)).view(np.uint64)


def _hashed(words: Words, shift: int) -> Positions:
    """Return the upper bits of a hash of each name."""
    mixed = np.zeros(len(words), dtype=np.uint64)
    for each in range(words.shape[1]):
        mixed += words[:, each] * np.uint64(pow(_GOLDEN, each + 1, 2**64))
    return (mixed >> np.uint64(shift)).astype(np.intp)

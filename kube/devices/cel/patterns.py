"""Reads the regular expressions that mean the same to RE2 and to Python, and end in bounded time.

RE2 takes linear time, Python may try ever more ways: so groups are not repeated, and few
quantifiers are taken.
"""

import re
from functools import lru_cache
from typing import Final

from kube.devices.cel.faults import NotReadable

LONGEST: Final = 256
QUANTIFIERS: Final = 2
LONGEST_TEXT: Final = 64
"""No attribute is longer. Two quantifiers then try 40,000 ways at most."""

_CLASS = r"\[\^?(?:[A-Za-z0-9 _.:/,;=@%!#<>+*?(){}-]|\\[-\\\]\[^.dDwW/+*?(){}|])+\]"
_ATOM = re.compile(
    rf"(?:{_CLASS}|\\[dDwW]|\\[\\.+*?()|\[\]{{}}^/-]|\.|[A-Za-z0-9 _:/,;=@%!#&~<>'\"-])"
    r"(?P<quantifier>[*+?]\??|\{[0-9]{1,2}(?:,[0-9]{0,2})?\})?"
)
_OTHER = re.compile(r"\((?:\?:)?|\)(?![*+?{])|\||\^|\$")


@lru_cache(maxsize=256)
def pattern(text: str) -> re.Pattern[str]:
    """Return the pattern; NotReadable where it is none of those."""
    if len(text) > LONGEST or not _is_simple(text):
        raise NotReadable("this regular expression")
    try:
        # Python's $ also stands before the last line feed, which RE2's does not.
        return re.compile(text.replace("$", r"\Z"), re.ASCII)
    except re.error:
        raise NotReadable("this regular expression") from None


def matches(text: str, expression: str) -> bool:
    """Say whether the expression is found in a text."""
    if len(text) > LONGEST_TEXT:
        raise NotReadable("regular expressions on long texts")
    return pattern(expression).search(text) is not None


def _is_simple(text: str) -> bool:
    position = quantifiers = 0
    while position < len(text):
        match = _ATOM.match(text, position) or _OTHER.match(text, position)
        if match is None:
            return False
        quantifiers += bool(match.groupdict().get("quantifier"))
        position = match.end()
    return quantifiers <= QUANTIFIERS and text.isascii() and "--" not in text

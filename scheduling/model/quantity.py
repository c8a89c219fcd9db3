"""Quantities of Kubernetes, parsed into whole numbers and rounded as kube-scheduler does."""

import re
from functools import lru_cache

from scheduling.model.amounts import CPU

MAX_AMOUNT = 2**63 - 1
"""Amounts live in int64 columns."""

MAX_TEXT = 128
"""Longer texts are refused unread; the canonical form an API server stores has some 30 at most."""

LARGEST_SIZE = 10**36
"""Sizes of claims and volumes are cut off here: beyond it all are equal."""

TEXTS_KEPT = 4096
"""Amounts kept by their text, which is of at most `MAX_TEXT` characters: 2 MiB.

Whatever the resource is called, so that no name of one outlives its pods.
"""

_MILLI = 3
_MOST_POWER = 36  # digits are at least 1, so what is beyond exceeds every bound here

_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?:(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]*))?|\.(?P<bare>[0-9]+))"
    r"(?:(?P<binary>[KMGTPE])i|(?P<decimal>[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_BINARY = {unit: 1024**power for power, unit in enumerate("KMGTPE", start=1)}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_ALLOWED = (
    "allowed is a number of at most 2^63-1, not negative, "
    "with one of the suffixes n u m k M G T P E, Ki Mi Gi Ti Pi Ei, e<integer>, or none"
)


class BadQuantity(ValueError):  # noqa: N818 # a fault of the input, named as such
    """A quantity that is none, is negative, or does not fit into 64 bits."""

    def __init__(self, resource: str, text: str, fault: str) -> None:
        super().__init__(f"{resource}: {text[:MAX_TEXT]!r} {fault}; {_ALLOWED}")


def request_amount(resource: str, text: str) -> int:
    """Return what a pod asks for, rounded up; raise BadQuantity where the text is no amount."""
    try:
        return _rounded_up(text, _MILLI if resource == CPU else 0)
    except _Fault as fault:
        raise BadQuantity(resource, text, str(fault)) from None


def allocatable_amount(resource: str, text: str) -> int:
    """Return what a node offers, rounded down; raise BadQuantity where the text is no amount."""
    try:
        return _rounded_down(text, _MILLI if resource == CPU else 0)
    except _Fault as fault:
        raise BadQuantity(resource, text, str(fault)) from None


def requested_size(text: str) -> int:
    """Return the size in bytes that a claim asks for, rounded up, at most `LARGEST_SIZE`.

    Sizes are compared and never added up: kube-scheduler does it exactly, beyond 64 bits too.
    """
    amount, remainder = _size(text)
    return min(amount + (remainder > 0), LARGEST_SIZE)


def offered_size(text: str) -> int:
    """Return the size in bytes that a volume has, rounded down, at most `LARGEST_SIZE`."""
    return min(_size(text)[0], LARGEST_SIZE)


def _size(text: str) -> tuple[int, int]:
    try:
        return _amount_and_remainder(text, 0)
    except _TooLarge:
        return LARGEST_SIZE, 0
    except _Fault as fault:
        raise BadQuantity("storage", text, str(fault)) from None


class _Fault(ValueError):  # noqa: N818 # what is wrong with a text, whatever it is an amount of
    """Why a text is no amount."""


class _TooLarge(_Fault):
    """It is one that has no end in sight."""


@lru_cache(maxsize=TEXTS_KEPT)
def _rounded_up(text: str, power: int) -> int:
    amount, remainder = _amount_and_remainder(text, power)
    return _within_range(amount + (remainder > 0))


@lru_cache(maxsize=TEXTS_KEPT)
def _rounded_down(text: str, power: int) -> int:
    return _within_range(_amount_and_remainder(text, power)[0])


def _amount_and_remainder(text: str, power: int) -> tuple[int, int]:
    """Return the whole amount, times 10^power, and something positive if a part is left."""
    match = _GRAMMAR.fullmatch(text) if len(text) <= MAX_TEXT else None
    if match is None:
        raise _Fault("is not a Kubernetes quantity")
    fraction = match["fraction"] or match["bare"] or ""
    digits = int((match["whole"] or "") + fraction) * _BINARY.get(match["binary"], 1)
    if digits == 0:
        return 0, 0
    if match["sign"] == "-":
        raise _Fault("is negative")
    power += _DECIMAL.get(match["decimal"], 0) + int(match["exponent"] or 0)
    return _shifted(digits, power - len(fraction))


def _shifted(digits: int, power: int) -> tuple[int, int]:
    """Return digits x 10^power as amount and remainder, without ever computing a huge power."""
    if power > _MOST_POWER:
        raise _TooLarge("is too large")
    if power >= 0:
        return digits * 10**power, 0
    if -power > MAX_TEXT + 20:  # digits < 10^MAX_TEXT x 2^60: nothing whole can be left
        return 0, digits
    unit: int = 10**-power
    return divmod(digits, unit)


def _within_range(amount: int) -> int:
    if amount > MAX_AMOUNT:
        raise _Fault("is too large")
    return amount

"""Words amounts, ages, phases and bars for tables."""

from __future__ import annotations

from datetime import datetime

from cli.show.table import Cell
from kube.codec.fields import AFTER_ALL, moment_of
from scheduling.diagnosis.amount_texts import written
from scheduling.model.quantity import BadQuantity, request_amount

BAR = 20
"""Characters of a bar."""

_STYLES = {
    "Running": "green",
    "Admitted": "cyan",
    "Queued": "yellow",
    "Gathering": "yellow",
    "Preempting": "magenta",
    "Failed": "red",
    "Finished": "dim",
}
_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def amount(resource: str, text: str | None) -> str:
    """Write a quantity in usual units; a dash where there is none."""
    if text is None:
        return "-"
    try:
        return written(resource, request_amount(resource, text), up=1)
    except BadQuantity:
        return text


def whole_amount(resource: str, count: int) -> str:
    """Write an amount in usual units, what is free no larger than it is."""
    return written(resource, count, up=0)


def counted(count: int, noun: str) -> str:
    """Write how many there are of something."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def phase(name: str) -> Cell:
    """Return a phase in its colour."""
    return Cell(name or "-", _STYLES.get(name, ""))


def age(stamp: str, now: float) -> str:
    """Write how long ago something was, in two units at most."""
    then = moment_of(stamp)
    if not stamp or then >= AFTER_ALL:
        return "-"
    return lasting(max(int(now - then), 0))


def lasting(seconds: int) -> str:
    """Write a duration, in two units at most."""
    for at, (unit, size) in enumerate(_UNITS):
        if seconds >= size:
            count, rest = divmod(seconds, size)
            less = _UNITS[at + 1 : at + 2]
            more = f"{rest // less[0][1]}{less[0][0]}" if less and rest >= less[0][1] else ""
            return f"{count}{unit}{more}"
    return "0s"


def clock(stamp: str) -> str:
    """Write a time of the API server, which is UTC, to the second."""
    then = moment_of(stamp)
    if not stamp or then >= AFTER_ALL:
        return "-"
    return datetime.fromisoformat(stamp).strftime("%Y-%m-%d %H:%M:%SZ")


def bar(used: int, reserved: int, whole: int, width: int = BAR) -> str:
    """Draw what is used (#), reserved (=) and free (.) of a whole.

    Anything that is there has at least one mark, so that no bar looks full or empty that is not.
    """
    if whole <= 0:
        return "[" + " " * width + "]"
    marks = _marks(min(used, whole), width, whole)
    more = _marks(min(used + reserved, whole), width, whole) - marks
    if reserved and not more:
        more, marks = 1, max(marks - 1, 1 if used else 0)
    taken = min(marks + more, width - 1 if used + reserved < whole else width)
    return "[" + ("#" * marks + "=" * more)[:taken].ljust(width, ".") + "]"


def _marks(part: int, width: int, whole: int) -> int:
    """Return the marks of a part: rounded, one at least where there is anything."""
    return max((part * width + whole // 2) // whole, 1) if part > 0 else 0

"""Gives queues unique names that the API server accepts."""

import re
from collections.abc import Iterable

LONGEST = 253
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_VALID = re.compile(rf"{_LABEL}(\.{_LABEL})*")


def is_valid(name: str) -> bool:
    """Say whether a name is a DNS subdomain (RFC 1123)."""
    return len(name) <= LONGEST and _VALID.fullmatch(name) is not None


def valid(name: str) -> str:
    """Return the name, or the nearest one that is a DNS subdomain."""
    if is_valid(name):
        return name
    plain = re.sub(r"[^a-z0-9.]+", "-", name.lower())
    parts = [part.strip("-") for part in plain[:LONGEST].split(".")]
    return ".".join(part for part in parts if part) or "queue"


class Names:
    """The names given so far; the first that asks for one gets it."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def give(self, *wishes: str) -> str:
        """Return the first wish that is free, else the last with the lowest free number."""
        names = [valid(each) for each in wishes]
        free = next((each for each in names if each not in self._given), None)
        chosen = free or self._numbered(names[-1])
        self._given.add(chosen)
        return chosen

    def _numbered(self, name: str) -> str:
        number = 2
        while (found := _with_number(name, number)) in self._given:
            number += 1
        return found


def _with_number(name: str, number: int) -> str:
    tail = f"-{number}"
    return name[: LONGEST - len(tail)].rstrip("-.") + tail


def several(names: Iterable[str], shown: int = 5) -> str:
    """Write names for a message: the first few, and how many more."""
    found = sorted(names)
    more = f" and {len(found) - shown} more" if len(found) > shown else ""
    return ", ".join(found[:shown]) + more

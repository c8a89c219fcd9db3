"""Reads how long gangs ran from the status of a GangQueue."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kube.codec.fields import InvalidObject
from kube.objects.queues.learned_durations import MOST_COUNTED, LearnedDurations

FIELD = "status.learnedDurations"
LONGEST = 10**8
_SECONDS = re.compile(r"[0-9]{1,9}")
_ALLOWED = (
    f"whole seconds from 1 to {LONGEST}, each with a count from 1 to {MOST_COUNTED}; it counts as "
    "nothing"
)

Times = Mapping[int, int]
"""How many ran for so many seconds."""


class Recorded(NamedTuple):
    """What a status tells, by namespace and of all others; `fault` says what cannot be read."""

    namespaces: Mapping[str, Times]
    rest: Times
    fault: str = ""


def read_durations(status: LearnedDurations | None) -> Recorded:
    """Return what a status tells; what cannot be read counts as nothing."""
    if status is None:
        return Recorded({}, {})
    faults: list[str] = []
    named = {
        each.name: dict(_times(each.seconds, f"{FIELD}.namespaces[{each.name}].seconds", faults))
        for each in status.namespaces
    }
    rest = dict(_times(status.rest, f"{FIELD}.rest", faults))
    found = {name: times for name, times in named.items() if times}
    return Recorded(found, rest, next(iter(faults), ""))


def _times(said: Mapping[str, int], field: str, faults: list[str]) -> Iterable[tuple[int, int]]:
    for text, count in said.items():
        seconds = int(text) if _SECONDS.fullmatch(text) else 0
        if 1 <= seconds <= LONGEST and 1 <= count <= MOST_COUNTED:
            yield seconds, count
        else:
            faults.append(str(InvalidObject(field, f"{text}: {count}", _ALLOWED)))

"""Messages about preemption: what a gang waits for, and what is not taken for it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from scheduling.model.amounts import PODS
from scheduling.model.gang import GangKey
from scheduling.model.preemption import GangPart
from scheduling.model.verdict import MESSAGE_LIMIT, Reason, Refusal

MOST_NAMED = 2
"""So many gangs are named; the others are counted."""

REASON_SHOWN = 200
"""How much a message shows of why a gang is kept."""


def preempting(parts: Sequence[GangPart]) -> Refusal:
    """Say what has to end before a gang starts."""
    whole = sorted({str(each.gang) for each in parts if each.is_minimum})
    surplus = [part for part in parts if str(part.gang) not in whole]
    of = sorted({str(each.gang) for each in surplus})
    said = []
    if whole:
        said.append(f"{_several(len(whole), 'gang')} ({_named(whole)})")
    if surplus:
        said.append(f"{_several(len(surplus), 'surplus replica')} of {_named(of)}")
    verb = "has" if len(whole) + len(surplus) == 1 else "have"
    left = _several(_pods(parts), "pod")
    text = f"waits until {' and '.join(said)} {verb} ended: {left} left; the room is held for it"
    return Refusal(Reason.PREEMPTING, text)


def not_taken(kept: Sequence[tuple[GangKey, str]]) -> str:
    """Say which gangs its rules would let a gang stop, and why that cannot be done."""
    if not kept:
        return ""
    said = [f"{gang} cannot be stopped for it: {why[:REASON_SHOWN]}" for gang, why in kept]
    more = len(said) - MOST_NAMED
    return "; ".join(said[:MOST_NAMED]) + (f"; nor can {more} more" if more > 0 else "")


def with_note(refusal: Refusal, note: str) -> Refusal:
    """Add a sentence to a refusal, as far as the limit allows."""
    if not note:
        return refusal
    message = f"{refusal.message}; {note}"
    if len(message) > MESSAGE_LIMIT:
        message = message[: MESSAGE_LIMIT - 1] + "…"
    return replace(refusal, message=message)


def held_for(gangs: Sequence[GangKey]) -> str:
    """Say that room is held for gangs for which others end."""
    return f"room is held for {_named([str(each) for each in gangs])}" if gangs else ""


def _named(names: Sequence[str]) -> str:
    """Name the first, and count the others."""
    more = len(names) - MOST_NAMED
    rest = [f"and {more} more"] if more > 0 else []
    return ", ".join([*names[:MOST_NAMED], *rest])


def _several(count: int, thing: str) -> str:
    return f"{count} {thing}" + ("" if count == 1 else "s")


def _pods(parts: Iterable[GangPart]) -> int:
    amounts: Counter[str] = Counter()
    for part in parts:
        for _, requests in part.room:
            amounts.update(dict(requests))
    return amounts[PODS]

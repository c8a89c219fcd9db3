"""Words messages about preemption: which gangs end, and which gangs cannot be stopped."""

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
    devices = sum(len(each.devices) for each in parts if each.is_without_pods)
    ending = [each for each in parts if not each.is_without_pods]
    if not ending:
        left = f"{_several(devices, 'device')} of pods that are gone"
        return Refusal(Reason.PREEMPTING, f"waits for {left}; the room is held for it")
    whole = sorted({str(each.gang) for each in ending if each.is_minimum})
    surplus = [part for part in ending if str(part.gang) not in whole]
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


def not_taken(namespace: str, kept: Sequence[GangPart]) -> str:
    """Say which gangs the rules of a namespace's gang would let it stop, and why it cannot.

    Of other namespaces gangs are counted: their names, and those of their budgets, are not told.
    """
    own = [each for each in kept if each.gang.namespace == namespace]
    said = [
        f"{each.gang} cannot be stopped for it: {each.kept_because[:REASON_SHOWN]}"
        for each in own[:MOST_NAMED]
    ]
    more = len(own) - MOST_NAMED
    said += [f"nor can {more} more"] if more > 0 else []
    others = Counter(each.kept_in_short for each in kept if each.gang.namespace != namespace)
    return "; ".join([*said, *(_of_others(count, why) for why, count in sorted(others.items()))])


def _of_others(count: int, why: str) -> str:
    which = (
        f"{_several(count, 'gang')} of {'another namespace' if count == 1 else 'other namespaces'}"
    )
    return f"{which} cannot be stopped for it" + (f": {why}" if why else "")


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

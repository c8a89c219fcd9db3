"""Says in the words of a template when something is there.

Some worlds of all that there are become one condition of few switches: a conjunction where one
will do, else a disjunction of worlds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from charts.worlds import World

Literal = tuple[str, bool]
Worlds = frozenset[World]


def condition(subset: Worlds, universe: Worlds, words: Mapping[str, str]) -> str:
    """The condition that holds in the worlds of the subset alone; empty where it always holds."""
    if subset == universe:
        return ""
    found = _conjunction(subset, universe)
    if found is not None:
        return _all(found, words)
    other = _conjunction(universe - subset, universe)
    if other is not None:
        return f"not ({_all(other, words)})"
    ones = (frozenset((world,)) for world in sorted(subset, key=sorted))
    parts = (_conjunction(one, universe) or [] for one in ones)
    return " ".join(["or", *(f"({_all(part, words)})" for part in parts)])


def _conjunction(subset: Worlds, universe: Worlds) -> list[Literal] | None:
    """The fewest switches that are on, or off, in these worlds and in no others."""
    names = sorted({name for world in universe for name in world})
    literals = [
        (name, on)
        for on in (True, False)
        for name in names
        if all((name in world) is on for world in subset)
    ]
    if not subset or _holding(literals, universe) != subset:
        return None
    for each in reversed(literals):
        fewer = [other for other in literals if other != each]
        if _holding(fewer, universe) == subset:
            literals = fewer
    return literals


def _holding(literals: Iterable[Literal], universe: frozenset[World]) -> frozenset[World]:
    wanted = list(literals)
    return frozenset(
        world for world in universe if all((name in world) is on for name, on in wanted)
    )


def _all(literals: Iterable[Literal], words: Mapping[str, str]) -> str:
    parts = [words[name] if on else f"(not {words[name]})" for name, on in literals]
    if len(parts) > 1:
        return " ".join(["and", *parts])
    return parts[0].removeprefix("(").removesuffix(")") if parts[0][0] == "(" else parts[0]

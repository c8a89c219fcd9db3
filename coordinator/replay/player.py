"""Replays a recording: feeds its steps to a new state machine, and compares the actions."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from coordinator.replay.forms import IS
from coordinator.replay.lines import Recording, Step, as_json, said_of
from coordinator.state_machine import CoordinatorState

LONGEST = 400
"""Characters of an action in a message; which part of it differs is told beside it."""


@dataclass(frozen=True, slots=True)
class Played:
    """What was played. `difference` has a line for each thing to be told, none where all is equal.

    `steps` and `actions` are those that were equal.
    """

    steps: int
    actions: int
    difference: tuple[str, ...] = ()


def play(recording: Recording) -> Played:
    """Play a recording up to its end, or to the first answer that is another one.

    Raises:
        BadRecordingError: A line cannot be read.

    """
    state = recording.settings.build()
    steps = actions = 0
    for step in recording.steps():
        difference = tuple(_difference(step, _answer(state, step)))
        if difference:
            return Played(steps, actions, difference)
        steps += 1
        actions += len(step.actions or ())
    return Played(steps, actions)


def _answer(state: CoordinatorState, step: Step) -> list[dict[str, Any]] | str:
    """Return the actions, or what the state machine fails with."""
    try:
        return as_json(state.handle(step.events, step.moment))
    except Exception as error:  # noqa: BLE001 - whatever it fails with is to be the same again
        return said_of(error)


def _difference(step: Step, answer: list[dict[str, Any]] | str) -> Iterator[str]:
    recorded = step.failed if step.actions is None else step.actions
    if answer == recorded:
        return
    if isinstance(answer, str) or isinstance(recorded, str):
        yield f"line {step.line}: one of the two fails"
        yield f"  recorded: {_summary(recorded)}"
        yield f"  replayed: {_summary(answer)}"
        return
    pairs = list(zip_longest(recorded, answer))
    at, (then, now) = next((at, pair) for at, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    yield f"line {step.line}, action {at}, {_subject(then or now)}: the actions differ"
    yield f"  recorded: {_shown(then)}"
    yield f"  replayed: {_shown(now)}"
    if then and now and then[IS] == now[IS]:
        path, one, other = next(_parts(then, now))
        yield f"  first at {path}: {_cut(one)}, and now {_cut(other)}"


def _subject(action: dict[str, Any]) -> str:
    """Name what an action is about: a gang, or a queue."""
    key = action.get("key") or action.get("gang")
    if key is None:
        return f"GangQueue {action.get('name', '')}"
    return f"gang {key['namespace']}/{key['name']}"


def _shown(action: dict[str, Any] | None) -> str:
    return "no such action" if action is None else f"{action[IS]} {_cut(action)}"


def _summary(answer: list[dict[str, Any]] | str) -> str:
    return answer if isinstance(answer, str) else f"{len(answer)} actions"


def _cut(value: Any) -> str:
    if isinstance(value, dict):
        value = {key: each for key, each in value.items() if key != IS}
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _parts(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """List the parts in which two JSON values differ, with the way to each."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if one.get(key) != other.get(key):
                yield from _parts(one.get(key), other.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            if mine != theirs:
                yield from _parts(mine, theirs, f"{path}[{at}]")
    else:
        yield path, one, other

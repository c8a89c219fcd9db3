"""The lines of a recording: a start, then one for each step of the state machine, and an end.

    {"format": 1, "muster": "0.9.0", "settings": {...}}
    {"step": 1, "now": 7.25, "stamp": "2026-01-01T00:00:00Z", "wall": 1767225600.5,
     "events": [...], "actions": [...]}
    {"ended": "why nothing was recorded from here on"}

Steps are counted, so that lines that are missing are noticed. A step in which the state machine
failed has "failed" in the place of its actions. The last line may be torn: the process was killed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from coordinator.messages.actions import (
    Action,
    PatchGangSpec,
    WriteGangStatus,
    WriteQueueStatus,
)
from coordinator.messages.events import Event
from coordinator.replay.forms import Forms, UnreadableValueError
from coordinator.state_settings import StateSettings
from kube.objects.base import Labels, ObjectMeta
from kube.ray.known_keys import PREFIX
from runtime.controller.moment import Moment

FORMAT = 1
"""To be raised where a recording of before would be read otherwise than it was meant."""


class BadRecordingError(Exception):
    """A file is no recording, or none that can be read; the text is one line for people."""


def _without_values(annotations: Labels) -> Labels:
    """Keep of others' annotations only that they are there: anything may be in them.

    Deployment tools keep whole manifests there, with the environment of containers.
    """
    return {key: v if key.startswith(PREFIX) else "" for key, v in annotations.items()}


def _as_it_was_seen(_before: object) -> dict[str, Any]:
    """Leave out what an action says of an object as it was: the event that told of it has it."""
    return {}


_FORMS = Forms(
    shown={
        (ObjectMeta, "annotations"): _without_values,
        **dict.fromkeys(
            ((kind, "before") for kind in (PatchGangSpec, WriteGangStatus, WriteQueueStatus)),
            _as_it_was_seen,
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the state machine, as it stands in a line.

    `actions` are as JSON; None where the state machine failed, as `failed` says.
    """

    line: int
    moment: Moment
    events: list[Event]
    actions: list[dict[str, Any]] | None
    failed: str = ""


@dataclass(slots=True)
class Recording:
    """A recording, read step by step; what it ends with is known once all steps were read.

    `cut` says that its last line is torn, `ended` why it was ended before the coordinator was.
    """

    path: Path
    muster: str
    settings: StateSettings
    cut: bool = False
    ended: str = ""

    def steps(self) -> Iterator[Step]:
        """Read the steps.

        Raises:
            BadRecordingError: A line is none of a recording.

        """
        for number, (line, whole) in enumerate(_raw_lines(self.path), 1):
            if number == 1 or self.ended:
                continue
            if not whole:
                self.cut = True
                return
            data = _parsed(self.path, number, line)
            if "ended" in data:
                self.ended = str(data["ended"])
            else:
                yield _step(self.path, number, data)


def open_recording(path: Path) -> Recording:
    """Read the start of a recording.

    Raises:
        BadRecordingError: It cannot be read, or is of another format.

    """
    try:
        line, whole = next(_raw_lines(path), (b"", False))
    except OSError as error:
        raise BadRecordingError(f"{path}: cannot be read: {error.strerror}") from None
    if not whole:
        raise BadRecordingError(f"{path}: is empty, or cut before the end of its first line")
    data = _parsed(path, 1, line)
    found = data.get("format")
    if found != FORMAT:
        said = "does not begin as a recording" if found is None else f"is of format {found!r:.20}"
        raise BadRecordingError(f"{path}: {said}; this release reads format {FORMAT}")
    try:
        settings = _changed(_FORMS.of(StateSettings).read, data["settings"])
        return Recording(path, str(data["muster"]), settings)
    except _UNREADABLE as error:
        raise _bad_line(path, 1, error) from None


def start_line(muster: str, settings: StateSettings) -> bytes:
    """Write the first line; `muster` is the version."""
    written = _changed(_FORMS.of(StateSettings).write, settings)
    return _line({"format": FORMAT, "muster": muster, "settings": written})


def step_line(
    number: int, moment: Moment, events: Sequence[Event], actions: Sequence[Action]
) -> bytes:
    """Write a step."""
    return _line({**_begun(number, moment, events), "actions": as_json(actions)})


def failed_line(number: int, moment: Moment, events: Sequence[Event], error: Exception) -> bytes:
    """Write a step in which the state machine failed."""
    return _line({**_begun(number, moment, events), "failed": said_of(error)})


def end_line(why: str) -> bytes:
    """Write that nothing is recorded from here on."""
    return _line({"ended": why})


def as_json(actions: Sequence[Action]) -> list[dict[str, Any]]:
    """Return actions as they are written."""
    write = _FORMS.of(Action).write
    return [_changed(write, each) for each in actions]


def said_of(error: Exception) -> str:
    """Return what is recorded of an exception of the state machine."""
    return f"{type(error).__name__}: {error}"


_UNREADABLE = (UnreadableValueError, KeyError, TypeError, ValueError, AttributeError)


def _begun(number: int, moment: Moment, events: Sequence[Event]) -> dict[str, Any]:
    write = _FORMS.of(Event).write
    return {
        "step": number,
        "now": moment.now,
        "stamp": moment.stamp,
        "wall": moment.wall,
        "events": [_changed(write, each) for each in events],
    }


def _step(path: Path, number: int, data: dict[str, Any]) -> Step:
    read = _FORMS.of(Event).read
    try:
        if data["step"] != number - 1:
            said = f"line {number} is step {data['step']}, and not {number - 1}"
            raise BadRecordingError(f"{path}: {said}: lines are missing")
        moment = Moment(data["now"], data["stamp"], data["wall"])
        events = [_changed(read, each) for each in data["events"]]
        actions = None if "failed" in data else data["actions"]
        return Step(number, moment, events, actions, data.get("failed", ""))
    except _UNREADABLE as error:
        raise _bad_line(path, number, error) from None


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise _bad_line(path, number, error) from None


def _bad_line(path: Path, number: int, error: Exception) -> BadRecordingError:
    said = f"there is no {error}" if isinstance(error, KeyError) else f"{error!s:.300}"
    return BadRecordingError(f"{path}: line {number} cannot be read: {said}")


def _raw_lines(path: Path) -> Iterator[tuple[bytes, bool]]:
    """Read lines, and whether each of them has its end."""
    with path.open("rb") as file:
        for line in file:
            yield line, line.endswith(b"\n")


def _line(content: dict[str, Any]) -> bytes:
    return msgspec.json.encode(content) + b"\n"


def _changed(change: Any, value: Any) -> Any:
    return value if change is None else change(value)

"""What is told of a recording that is not the same any more, or cannot be read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator.replay import __main__ as command
from coordinator.replay.lines import end_line
from coordinator.state_machine import CoordinatorState
from tests.replay.recorded import path_of

Json = dict[str, Any]
Change = Callable[[list[Json]], None]


def changed(tmp_path: Path, change: Change) -> Path:
    """A recording with something changed in its lines."""
    lines = [msgspec.json.decode(each) for each in path_of("lost-worker").read_bytes().splitlines()]
    change(lines)
    path = tmp_path / "changed.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in lines))
    return path


def ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str]:
    """The ending of the command, and all that it said."""
    monkeypatch.setattr("sys.argv", ["replay", *map(str, arguments)])
    code = command.main()
    said = capsys.readouterr()
    return code, said.out + said.err


Ended = Callable[..., tuple[int, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ended:
    return lambda *arguments: ended(monkeypatch, capsys, *arguments)


def at_action(lines: list[Json], kind: str) -> tuple[int, Json]:
    """The number of the first line with such an action, and the action."""
    return next(
        (number, each)
        for number, line in enumerate(lines, 1)
        for each in line.get("actions", ())
        if each["is"] == kind
    )


def test_the_same_actions_end_well(run: Ended) -> None:
    code, said = run(path_of("lost-worker"))
    assert code == 0
    assert said.endswith("all the same\n")


def test_the_first_difference_names_line_gang_and_both_actions(run: Ended, tmp_path: Path) -> None:
    numbers = []

    def elsewhere(lines: list[Json]) -> None:
        number, action = at_action(lines, "ReleasePod")
        numbers.append(number)
        action["node"] = "n7"

    code, said = run(changed(tmp_path, elsewhere))
    first, recorded, replayed, part = said.splitlines()
    assert code == 1
    assert first == f"line {numbers[0]}, action 1, gang team/a: the actions differ"
    assert recorded.startswith("  recorded: ReleasePod {")
    assert "'node': 'n7'" in recorded
    assert "'node': 'n1'" in replayed
    assert part == "  first at node: 'n7', and now 'n1'"


def test_an_action_too_few_or_too_many_is_a_difference(run: Ended, tmp_path: Path) -> None:
    def fewer(lines: list[Json]) -> None:
        number, _ = at_action(lines, "CreateGang")
        del lines[number - 1]["actions"][0]

    code, said = run(changed(tmp_path, fewer))
    assert code == 1
    assert "  recorded: no such action\n  replayed: CreateGang" in said


def test_the_settings_are_those_of_the_recording(run: Ended, tmp_path: Path) -> None:
    def at_home(lines: list[Json]) -> None:
        lines[0]["settings"]["home"] = "team"  # where no RayCluster is a gang

    code, said = run(changed(tmp_path, at_home))
    assert code == 1
    assert "replayed: no such action" in said


def test_a_failure_of_the_state_machine_is_played_too(
    run: Ended, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(lines: list[Json]) -> None:
        del lines[-1]["actions"]
        lines[-1]["failed"] = "KeyError: 'x'"

    path = changed(tmp_path, failing)
    code, said = run(path)
    assert code == 1
    assert "one of the two fails\n  recorded: KeyError: 'x'" in said
    count, handle = path.read_bytes().count(b"\n") - 1, CoordinatorState.handle

    def fails_last(self: CoordinatorState, *arguments: Any) -> Any:
        nonlocal count
        count -= 1
        if not count:
            raise KeyError("x")
        return handle(self, *arguments)

    monkeypatch.setattr(CoordinatorState, "handle", fails_last)
    assert run(path)[0] == 0


def without(number: int) -> Change:
    """Leave out a line."""
    return lambda lines: lines.__delitem__(number - 1)


def of_start(**fields: Any) -> Change:
    """Give the start other fields."""
    return lambda lines: lines[0].update(fields)


def of_event(**fields: Any) -> Change:
    """Give the first event other fields."""
    return lambda lines: lines[1]["events"][0].update(fields)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without(1), "does not begin as a recording; this release reads format 1"),
        (without(3), "line 3 is step 3, and not 2: lines are missing"),
        (of_start(format=2), "is of format 2; this release reads format 1"),
        (of_start(settings={}), "line 1 cannot be read: "),
        (of_event(**{"is": "Sunrise"}), "line 2 cannot be read: 'Sunrise' is none of "),
        (of_event(mood="good"), "line 2 cannot be read: "),
        (lambda lines: lines[3].pop("events"), "line 4 cannot be read: there is no 'events'"),
        (lambda lines: lines[3].pop("actions"), "line 4 cannot be read: there is no 'actions'"),
        (lambda lines: lines.clear(), "is empty, or cut before the end of its first line"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    run: Ended, tmp_path: Path, change: Change, said: str
) -> None:
    code, text = run(changed(tmp_path, change))
    assert code == 2
    assert said in text
    assert text.startswith(str(tmp_path))
    assert text.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b'{"format": 1', b"\x00\xff\n", b"[1]\n", b"{}\n"])
def test_a_file_that_is_no_recording_is_one_line(
    run: Ended, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "some"
    path.write_bytes(content)
    code, said = run(path)
    assert (code, said.count("\n")) == (2, 1)


def test_a_file_that_is_not_there_is_one_line(run: Ended, tmp_path: Path) -> None:
    assert run(tmp_path / "none") == (
        2,
        f"{tmp_path}/none: cannot be read: No such file or directory\n",
    )
    assert run(tmp_path)[0] == 2


def test_a_torn_last_line_is_left_out(run: Ended, tmp_path: Path) -> None:
    path = tmp_path / "torn"
    path.write_bytes(path_of("held").read_bytes()[:-7])
    code, said = run(path)
    assert code == 0
    assert said.endswith("all the same; the last line is torn and was left out\n")


def test_a_line_that_is_torn_in_the_middle_is_not(run: Ended, tmp_path: Path) -> None:
    lines = path_of("held").read_bytes().splitlines(keepends=True)
    path = tmp_path / "torn"
    path.write_bytes(b"".join([*lines[:5], lines[5][:-9] + b"\n", *lines[6:]]))
    code, said = run(path)
    assert code == 2
    assert "line 6 cannot be read" in said


def test_why_a_recording_ended_early_is_said(run: Ended, tmp_path: Path) -> None:
    path = tmp_path / "ended"
    path.write_bytes(path_of("held").read_bytes() + end_line("the disk is full"))
    code, said = run(path)
    assert code == 0
    assert said.endswith("; the recording ended early: the disk is full\n")

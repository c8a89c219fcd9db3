"""The report of a failure says enough of a cluster, and never more than one can read."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.aftermath import CUT, LINES, LINES_OF_OTHERS, WIDTH, brief, ends_of_logs, what_is_there
from testbed.errors import TestbedError
from testbed.waiting import wait_until


def write_log(folder: Path, name: str, lines: int) -> None:
    text = "".join(f"{name} says {number}\n" for number in range(lines))
    (folder / f"{name}.log").write_text(text)


def test_the_logs_end_with_what_muster_said_last(tmp_path: Path) -> None:
    for name in ("coordinator-1", "etcd", "webhook"):
        write_log(tmp_path, name, 1000)
    lines = ends_of_logs(tmp_path).splitlines()
    assert lines[-1] == "webhook says 999"
    assert lines[0] == f"--- etcd.log, the last {LINES_OF_OTHERS} of 1000 lines"
    assert sum(line.startswith("etcd says") for line in lines) == LINES_OF_OTHERS
    assert sum(line.startswith("coordinator-1 says") for line in lines) == LINES


def test_a_short_log_is_shown_whole(tmp_path: Path) -> None:
    write_log(tmp_path, "kwok", 1)
    assert ends_of_logs(tmp_path) == "--- kwok.log, the last 1 of 1 lines\nkwok says 0"


def test_a_long_line_is_cut(tmp_path: Path) -> None:
    (tmp_path / "ray-operator.log").write_text("x" * 100_000)
    assert ends_of_logs(tmp_path).splitlines()[-1] == "x" * WIDTH + CUT


def test_the_newest_objects_are_shown_under_their_columns() -> None:
    def kubectl(*args: str) -> str:
        return "\n".join(["NAME", *(f"{args[1]}-{number}" for number in range(1000))])

    lines = what_is_there(kubectl).splitlines()
    pods = [line for line in lines if line.startswith("pods-")]
    assert pods == [f"pods-{number}" for number in range(1000 - LINES, 1000)]
    assert lines.count("NAME") == 5


def test_a_kind_that_is_not_there_keeps_no_other_from_being_shown() -> None:
    def kubectl(*args: str) -> str:
        if args[1] == "gangs":
            raise TestbedError("no such kind")
        return "" if args[1] == "events" else f"NAME\nmy-{args[1]}"

    lines = what_is_there(kubectl).splitlines()
    assert lines[0] == "gangs: no such kind"
    assert {"my-pods", "no events"} <= {*lines}


def test_a_wait_in_vain_says_what_there_is_instead() -> None:
    many = [f"pod {number}" for number in range(LINES + 3)]
    with pytest.raises(
        TestbedError, match="in vain for pigs to fly; instead there is:\npod 0\n"
    ) as e:
        wait_until(lambda: False, "pigs to fly", 0.01, seen=lambda: brief(many))
    assert str(e.value).endswith(f"pod {LINES - 1}\nand 3 more")


def test_a_wait_in_vain_says_so_also_where_nothing_answers() -> None:
    def unreachable() -> str:
        raise ConnectionRefusedError("nobody there")

    with pytest.raises(TestbedError, match=r"for pigs to fly; .* cannot be asked: nobody there"):
        wait_until(lambda: False, "pigs to fly", 0.01, seen=unreachable)

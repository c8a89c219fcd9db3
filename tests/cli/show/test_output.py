"""Colours: on a terminal alone, and never with NO_COLOR; rows in columns."""

import io
import re
import sys

import pytest

from cli.report.snapshot import Snapshot
from cli.report.status import status_report
from cli.show.output import console
from cli.show.status import table
from tests.cli.objects import GPU, gang, node, pod, queue


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, out: io.StringIO) -> str:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stdout", out)
    report = status_report(Snapshot(gangs=(gang("g", reason="Pending", message="m" * 200),)))
    table(report, "table", 0.0)(console())
    return out.getvalue()


def test_a_terminal_gets_colours_and_rows_that_end_at_its_edge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    said = shown(monkeypatch, Terminal())
    assert "\x1b[33mQueued" in said
    assert (
        max(len(re.sub(r"\x1b\[[0-9]*m", "", each)) for each in said.splitlines() if "mmm" in each)
        == 60
    )


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_a_narrow_terminal_shows_every_number_in_lines_that_fit(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """What a row has no room for stands below it, with its head; bars go first."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    found = Snapshot(
        gangs=(gang("g", position=1, reason="InsufficientResources", message="m" * 200),),
        queues=(queue("q", {GPU: 61}, usage={GPU: "7"}, pending=5, admitted=3),),
        nodes=(node("a"), node("b")),
        pods=(pod("p", "a", 5),),
    )
    table(status_report(found), "table", 0.0)(console())
    lines = re.sub(r"\x1b\[[0-9]*m", "", out.getvalue()).splitlines()
    assert max(map(len, lines)) <= columns
    assert not any("#" in each for each in lines)
    said = " ".join(" ".join(lines).split())
    for part in ("InsufficientResources", "mmmm", "61", "54", "11"):
        assert part in said
    for size, count in ((1, 11), (2, 5), (4, 2), (8, 1)):
        assert f"FIT {size}: {count}" in said or (f"FIT {size}" in said and columns == 80)


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_wide_output_leaves_no_word_of_a_message_out(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """What is too long for the terminal goes on in lines below, under the message."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    words = [f"word{at}" for at in range(60)]
    gangs = (gang("g", message=" ".join(words)), gang("long", message="x" * 300))
    table(status_report(Snapshot(gangs=gangs)), "wide", 0.0)(console())
    lines = re.sub(r"\x1b\[[0-9]*m", "", out.getvalue()).splitlines()
    lines = [each for each in lines if "word" in each or "xx" in each]
    assert max(map(len, lines)) <= columns
    assert re.findall(r"word\d+", "\n".join(lines)) == words
    assert sum(each.count("x") for each in lines) == 300
    starts = [each.index("word") for each in lines if "word" in each]
    assert len({*starts[1:]}) == 1


def test_no_color_takes_the_colours_from_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown(monkeypatch, Terminal())


def test_a_pipe_gets_none_though_a_variable_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    said = shown(monkeypatch, io.StringIO())
    assert "\x1b" not in said
    assert "m" * 99 + "…" in said

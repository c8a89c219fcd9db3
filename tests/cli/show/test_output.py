"""Colours: on a terminal alone, and never with NO_COLOR; rows in columns."""

import io
import sys

import pytest

from cli.report.snapshot import Snapshot
from cli.report.status import status_report
from cli.show.output import console
from cli.show.status import table
from tests.cli.objects import gang


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
    assert "m" * 20 not in said


def test_no_color_takes_the_colours_from_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown(monkeypatch, Terminal())


def test_a_pipe_gets_none_though_a_variable_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    said = shown(monkeypatch, io.StringIO())
    assert "\x1b" not in said
    assert "m" * 99 + "…" in said

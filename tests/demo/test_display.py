"""Each change is shown once, in a terminal and without one."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from demo.claims import Claim
from demo.display import Lines, LiveTable, make_display
from demo.world import GangState, Row

WAITS = Row(
    ("team", "beta"),
    GangState("Queued", 1, "0/5", "InsufficientResources", "3 of 4 [small] fit"),
    gated=5,
)


def shown(*states: Row) -> list[str]:
    stream = io.StringIO()
    lines = Lines(stream)
    for state in states:
        lines.show([state])
    return [line.partition(" s  ")[2] for line in stream.getvalue().splitlines()]


def test_lines_say_how_a_gang_stands_and_why() -> None:
    assert shown(WAITS) == [
        "team/beta: Queued, 5 gated",
        "team/beta: InsufficientResources: 3 of 4 [small] fit",
    ]


def test_lines_say_nothing_twice() -> None:
    assert WAITS.state
    moved = replace(WAITS, state=replace(WAITS.state, position=2))
    assert len(shown(WAITS, WAITS, moved)) == 2


def test_lines_say_what_changed_only() -> None:
    runs = Row(WAITS.gang, GangState("Running", None, "5/5", "Running", "all"), running=5)
    assert shown(WAITS, runs)[2:] == ["team/beta: Running, 5 running"]


def test_lines_say_what_has_gone() -> None:
    stream = io.StringIO()
    lines = Lines(stream)
    lines.show([WAITS])
    lines.show([])
    assert stream.getvalue().endswith("team/beta: gone\n")


def test_pods_of_no_gang_are_shown_as_such() -> None:
    stock = Row(("team", "stock"), None, pending=2, running=3)
    leaving = replace(stock, pending=0, running=0, going=3)
    assert shown(stock, leaving) == [
        "team/stock: no gang, 3 running, 2 pending",
        "team/stock: leaving, 3 going",
    ]


def test_a_stream_that_is_no_terminal_gets_lines() -> None:
    assert isinstance(make_display(io.StringIO(), plain=False), Lines)


def test_the_table_shows_gangs_pods_and_reasons_as_they_are_written() -> None:
    stream = io.StringIO()
    table = LiveTable(Console(file=stream, force_terminal=True, width=100))
    with table.scene("Two", "Look."):
        table.show([WAITS])
        table.say("[beta] waits")
    table.conclude("Two", [Claim("it waits"), Claim("it flies", holds=False)])
    text = stream.getvalue()
    assert "░░░░░" in text
    assert "3 of 4 [small] fit" in text
    assert "[beta] waits" in text
    assert "✗" in text


def test_every_gang_of_a_crowd_gets_one_line() -> None:
    assert WAITS.state
    wordy = replace(WAITS, state=replace(WAITS.state, message="word " * 100))
    crowd = [replace(wordy, gang=("team", f"gang-{n}")) for n in range(20)]
    stream = io.StringIO()
    table = LiveTable(Console(file=stream, force_terminal=True, width=100, height=50))
    with table.scene("Crowd", "Look."):
        table.show(crowd)
    assert stream.getvalue().count("word") < 20 * 20

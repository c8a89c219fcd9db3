"""Logs are passed on piece by piece, in bounded memory, and do nothing to a terminal."""

import io
import sys

import pytest

from cli.show.log_lines import LONGEST_LINE, LogLines, LogPrinter, write


def passed(pieces: list[bytes], prefix: str) -> bytes:
    lines = LogLines(prefix)
    return b"".join(map(lines.feed, pieces)) + lines.rest()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_whole_wherever_the_pieces_end(size: int) -> None:
    text = b"one\n\ntwo\nthree"
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert passed(pieces, "[p] ") == b"[p] one\n[p] \n[p] two\n[p] three\n"
    assert passed(pieces, "") == text


def test_a_line_without_an_end_is_broken_and_not_kept() -> None:
    lines = LogLines("[p] ")
    for _ in range(50):
        lines.feed(b"x" * 10_000)
        assert len(lines.rest()) <= LONGEST_LINE + 5
    found = passed([b"x" * (2 * LONGEST_LINE + 1)], "[p] ")
    assert [len(each) for each in found.splitlines()] == [LONGEST_LINE + 4, LONGEST_LINE + 4, 5]


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_colours_and_no_other_control_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = b"\x1b[31mred\x1b[0m\t\x1b]0;title\x07\x1b[2Jgone\xc2\x9b2J\r\n\x00"
    screen = Terminal(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", screen)
    write(log)
    assert screen.buffer.getvalue() == b"\x1b[31mred\x1b[0m\t]0;title[2Jgone2J\r\n"  # type: ignore[attr-defined]
    file = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", file)
    write(log)
    assert file.buffer.getvalue() == log


def test_lines_that_come_at_the_same_time_stay_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", file)
    printer = LogPrinter()
    printer.take("a", "[a] ", b"on")
    printer.take("b", "[b] ", b"two\n")
    printer.take("a", "[a] ", b"e\n")
    printer.take("b", "[b] ", None)
    assert file.buffer.getvalue() == b"[b] two\n[a] one\n"

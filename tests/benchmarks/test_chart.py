"""The bars hold what was measured, and add up."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from benchmarks.burst import cpu_title
from benchmarks.chart import SAME, Bar, bars, svg
from benchmarks.kinds import FLOOR, MUSTER, STOCK

SVG = "{http://www.w3.org/2000/svg}"
STOCK_CPU = {"kube-apiserver": 6.0, "kube-scheduler": 1.0, "kwok": 1.0, "driver": 5.0}
MUSTER_CPU = {
    "kube-apiserver": 8.0,
    "kube-scheduler": 0.5,
    "kwok": 1.0,
    "coordinator-0": 2.0,
    "webhook": 0.5,
    "unheard-of": 0.25,
    "driver": 7.0,
}


@pytest.fixture
def drawn() -> list[Bar]:
    return bars({cpu_title(STOCK): STOCK_CPU, cpu_title(MUSTER): MUSTER_CPU})


def test_a_bar_is_as_long_as_all_programs_but_the_driver_took(drawn: list[Bar]) -> None:
    assert [bar.name for bar in drawn] == ["stock", "Muster"]
    assert [bar.length for bar in drawn] == pytest.approx([80.0, 122.5])


def test_what_is_beyond_stock_is_told_program_by_program(drawn: list[Bar]) -> None:
    _, ours = drawn
    assert ours.pieces == pytest.approx(
        {
            SAME: 75.0,  # of 80 that stock costs, 5 less by kube-scheduler
            "API server": 20.0,
            "webhook": 5.0,
            "coordinator": 20.0,
            "others": 2.5,
        }
    )
    assert ours.saved == pytest.approx({"kube-scheduler": 5.0})


def test_stock_has_nothing_beyond_itself(drawn: list[Bar]) -> None:
    stock, _ = drawn
    assert stock.pieces == {SAME: 80.0}
    assert stock.saved == {}


def test_kinds_that_a_run_lacks_have_no_bar(drawn: list[Bar]) -> None:
    assert FLOOR.name not in {bar.name for bar in drawn}


def test_the_picture_is_drawn_to_scale(drawn: list[Bar]) -> None:
    picture = ET.fromstring(svg(drawn, "a < b & c"))
    pieces = [each for each in picture.iter(f"{SVG}rect") if each.find(f"{SVG}title") is not None]
    widths = {each.findtext(f"{SVG}title"): float(each.attrib["width"]) for each in pieces}
    whole, extra = widths["what stock costs too: 80.0 ms"], widths["API server: 20.0 ms"]
    assert whole / extra == pytest.approx(4.0, rel=0.01)
    rows = [bar.length for bar in drawn]
    assert sum(widths.values()) == pytest.approx(whole * sum(rows) / 80.0, rel=0.01)


def test_the_picture_says_what_was_saved_and_under_what_load(drawn: list[Bar]) -> None:
    texts = {each.text for each in ET.fromstring(svg(drawn, "load 1 < 2")).iter(f"{SVG}text")}
    assert "kube-scheduler -5" in texts
    assert any(text and text.endswith("load 1 < 2") for text in texts)

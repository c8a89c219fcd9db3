"""The page shows what the run found, and keeps all other text."""

from __future__ import annotations

import pytest

from benchmarks.machine import LOAD
from benchmarks.measure import Outcome, Row, ratio_within, stated
from benchmarks.publish import MARKS, PAGE, replaced, table

WITHIN = ratio_within(Row("to all Running", "s", (2.2, 2.0, 2.1), (2.0, 2.0, 2.0)), 1.05)
CASES = {
    "burst": {
        **Outcome([WITHIN, stated(Row("told", "s", (1.0,))), Row("not told", "s", (1.0,))]).plain(),
        "load": "0.3 0.2 0.1",
    },
    "backlog": {"error": "not measured", "load": "9"},
}
RUN = {"machine": {"cores": 2, LOAD: "0.1 0.2 0.3"}, "cases": CASES}


def test_the_table_has_the_rows_that_are_to_be_stated() -> None:
    text = table(RUN)
    assert "not told" not in text
    aimed, told = text.rstrip().splitlines()[-2:]
    assert told == "| `burst` | told |  |  | 1 s |  |  |"
    assert aimed == (
        "| `burst` | to all Running | ≤ 1.05 times the floor | floor: 2 s (2 to 2) "
        "| 2.1 s (2 to 2.2) | 1.05 (1 to 1.1) | yes |"
    )
    assert "cores 2." in text
    assert "Load as the run began: 0.1. " in text
    assert ": `burst` 0.3." in text


@pytest.mark.parametrize(("load", "busy"), [("0.3 9 9", False), ("2.0 0 0", True)])
def test_a_busy_machine_is_said_to_be_busy_and_decides_no_aim(load: str, busy: bool) -> None:
    missed = ratio_within(Row("to all bound", "s", (9.0,), (2.0,)), 1.05)
    cases = {"burst": {**Outcome([WITHIN, missed]).plain(), "load": load}}
    text = table({"machine": {"cores": 2, LOAD: load}, "cases": cases})
    assert ("machine was busy" in text) is busy
    met = [line.rsplit("|", 2)[1].strip() for line in text.rstrip().splitlines()[-2:]]
    assert met == (["", ""] if busy else ["yes", "no"])


def test_the_load_that_earlier_cases_leave_is_not_that_of_others() -> None:
    later = {"burst": CASES["burst"], "freed": {**CASES["burst"], "load": "7.5 3 1"}}
    text = table({**RUN, "cases": later})
    assert "`burst` 0.3, `freed` 7.5." in text
    assert "machine was busy" not in text
    assert text.count("| yes |") == 2


def test_only_what_is_between_the_marks_is_replaced() -> None:
    first, last = MARKS
    page = f"before\n{first}\nold\n{last}\nafter\n"
    assert replaced(page, "new", MARKS) == f"before\n{first}\nnew\n{last}\nafter\n"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks"):
        replaced("\n".join(reversed(MARKS)), "new", MARKS)


def test_the_page_has_its_marks() -> None:
    assert replaced(PAGE.read_text(), "new", MARKS)

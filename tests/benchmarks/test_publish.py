"""Does the page tell what the run found, and keep all else?"""

from __future__ import annotations

import pytest

from benchmarks.measure import Outcome, Row, ratio_within, stated
from benchmarks.publish import BEGIN, END, PAGE, replaced, table

WITHIN = ratio_within(Row("to all Running", "s", (2.2, 2.0, 2.1), (2.0, 2.0, 2.0)), 1.05)
CASES = {
    "burst": {
        **Outcome([WITHIN, stated(Row("told", "s", (1.0,))), Row("not told", "s", (1.0,))]).plain(),
        "load": "0.3 0.2 0.1",
    },
    "backlog": {"error": "not measured", "load": "9"},
}
RUN = {"machine": {"cores": 2, "load at the start": "0.1"}, "cases": CASES}


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
    assert "Load as each case began: `burst` 0.3." in text


@pytest.mark.parametrize(("load", "busy"), [("0.3 9 9", False), ("2.0 0 0", True)])
def test_a_busy_machine_is_said_to_be_busy(load: str, busy: bool) -> None:
    cases = {"burst": {**CASES["burst"], "load": load}}
    assert ("machine was busy" in table({**RUN, "cases": cases})) is busy


def test_only_what_is_between_the_marks_is_replaced() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert replaced(page, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks"):
        replaced(f"{END}\n{BEGIN}", "new")


def test_the_page_has_its_marks() -> None:
    assert replaced(PAGE.read_text(), "new")

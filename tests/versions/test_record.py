"""A run goes on where it stopped, and the page states what is on record."""

from __future__ import annotations

from pathlib import Path

from testbed.recipes import KUBERNETES
from tests.versions.plan import failed, skipped, steps
from tests.versions.record import Record, Run, continued, write
from tests.versions.table import MARKS, PAGE, records, table

WELL = Run(True, "37 of 37 claims hold")
ILL = Run(False, "1 failed, 2 passed", ["tests/a.py::test_b"], ["tests/c.py:3: why"])


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    write(Record("1.37.2", "abc").added("demo", WELL, "2026-01-02"), tmp_path)
    found = continued("1.37.2", "abc", tmp_path)
    assert not found.lacks("demo")
    assert found.lacks("oracle")
    assert found.added("tests", ILL, "2026-01-03").lacks("tests"), "what failed is run again"


def test_another_commit_begins_anew(tmp_path: Path) -> None:
    write(Record("1.37.2", "abc").added("demo", WELL, "2026-01-02"), tmp_path)
    assert continued("1.37.2", "def", tmp_path).lacks("demo")
    assert continued("1.36.3", "abc", tmp_path).lacks("demo")


def test_each_step_is_found_in_what_it_prints() -> None:
    said = """
    1.2 s  36 of 37 claims hold
200 cases in 61 s (3.3 a second)
1 unsound, 0 not answered by kube-scheduler in time
80 admitted of 84 (95.24 %) that fit in any order of binding
SKIPPED [1] tests/c.py:3: why
FAILED tests/a.py::test_b - AssertionError: it is 3 of 4 in 5s
2 failed, 7 passed, 1 skipped, 9 deselected in 12.34s (0:00:12)
"""
    assert {step.name: step.summary(said) for step in steps("1.35.4", ())} == {
        "demo": "36 of 37 claims hold",
        "oracle": "200 cases, 1 unsound, 80 admitted of 84",
        "tests": "2 failed, 7 passed, 1 skipped, 9 deselected",
    }
    assert [step.name for step in steps("1.37.2", ())][-1] == "upgrade"
    assert failed(said) == ["tests/a.py::test_b"]
    assert skipped(said) == ["tests/c.py:3: why"]


def test_the_table_says_what_failed_and_what_was_skipped_and_why() -> None:
    record = Record("1.37.2", "abc").added("demo", WELL, "2026-01-02")
    text = table([record.added("tests", ILL, "2026-01-03")])
    assert (
        "| 1.37.2 | run | abc, 2026-01-03 | demo: 37 of 37 claims hold; tests: 1 failed, 2 passed |"
        in text
    )
    assert "On 1.37.2:\n\n- failed: `tests/a.py::test_b`\n- skipped: tests/c.py:3: why" in text


def test_the_page_states_what_is_on_record() -> None:
    begin, end = MARKS
    stated = PAGE.read_text().partition(f"{begin}\n")[2].partition(f"\n{end}")[0]
    assert stated == table(records(KUBERNETES))

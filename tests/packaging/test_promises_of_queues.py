"""The tests that docs/queues-reference.md names for what waiting gangs are promised run."""

import re
from typing import Any

import pytest

from tests.packaging.test_comparison import functions
from tests.packaging.tree import ROOT

HEADING = "What a waiting gang may count on"
ROW = re.compile(r"^\| ([^|]+) \|(?: [^|]+ \|){3} `(tests/[\w/]+\.py)::(\w+)` \|$", re.MULTILINE)


def section() -> str:
    text = (ROOT / "docs" / "queues-reference.md").read_text(encoding="utf-8")
    return text.partition(f"\n## {HEADING}\n")[2].partition("\n## ")[0]


ROWS: list[Any] = ROW.findall(section())


def test_each_promise_names_a_test_of_its_own() -> None:
    lines = [line for line in section().splitlines() if line.startswith("| ")]
    assert len({(path, name) for _, path, name in ROWS}) == len(lines) - 1 >= 15


@pytest.mark.parametrize(("_promise", "path", "name"), ROWS, ids=[row[0] for row in ROWS])
def test_it_exists_and_is_not_skipped(_promise: str, path: str, name: str) -> None:
    assert name in functions(path)
    assert not [each for each in functions(path)[name] if "skip" in each or "xfail" in each]

"""The tests that docs/comparison.md names for the failures of neighbours exist, and run."""

import ast
import re
from functools import cache
from typing import Any

import pytest

from tests.packaging.tree import ROOT

ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| `(tests/[\w/]+\.py)::(\w+)`[^|`]* \|$", re.MULTILINE)
HEADING = "What broke elsewhere, and the test that keeps it from breaking here"
ISSUE = re.compile(r"(?:Kueue|KubeRay|Volcano|KAI|scheduler-plugins)#\d+")


def section() -> str:
    text = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    return text.partition(f"\n## {HEADING}\n")[2].partition("\n## ")[0]


ROWS: list[Any] = ROW.findall(section())


@cache
def functions(path: str) -> dict[str, list[str]]:
    """The tests of a file, with their decorators as they are written."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = (each for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
    return {each.name: [ast.unparse(with_) for with_ in each.decorator_list] for each in found}


def test_each_row_of_the_tables_names_a_test() -> None:
    lines = [line for line in section().splitlines() if line.startswith("| ")]
    heads = [line for line in lines if line.startswith("| what broke |")]
    assert len(ROWS) == len(lines) - len(heads) >= 30


@pytest.mark.parametrize(("_broke", "where", "path", "name"), ROWS, ids=[row[0] for row in ROWS])
def test_it_exists_and_is_not_skipped(_broke: str, where: str, path: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in functions(path)
    assert not [each for each in functions(path)[name] if "skip" in each or "xfail" in each]
    rest = ISSUE.sub("", where)
    assert "#" not in rest, "an issue is named like Kueue#9986"


def test_no_failure_is_listed_twice() -> None:
    assert len({(broke, where) for broke, where, _, _ in ROWS}) == len(ROWS)
    assert len({(path, name) for _, _, path, name in ROWS}) == len(ROWS)

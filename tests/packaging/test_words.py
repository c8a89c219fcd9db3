"""Code and documents speak plainly: modules begin with a statement, and pods are no persons."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.tree import ROOT, files, programs

PRONOUNS = re.compile(r"\b(whom|nobody|somebody|everybody|anybody)\b", re.IGNORECASE)
CODE = [*programs(), "dev"]
SPOKEN = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "docs", "manifests", *CODE)]


def texts(path: Path) -> Iterator[Path]:
    found = [path] if path.is_file() else files(path)
    yield from (each for each in found if each.suffix in (".py", ".md", ".yaml"))


def head(path: Path) -> str:
    """The first paragraph of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0]


@pytest.mark.parametrize("root", SPOKEN, ids=lambda path: path.name)
def test_no_pronoun_of_a_person_stands_for_a_pod(root: Path) -> None:
    found = {
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in texts(root)
        for match in PRONOUNS.finditer(path.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_every_module_begins_with_a_statement() -> None:
    modules = [path for path in files() if path.suffix == ".py"]
    assert modules
    assert [str(path.relative_to(ROOT)) for path in modules if "?" in head(path)] == []

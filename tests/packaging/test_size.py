"""A reader can take in any file, and find any file in its folder."""

from collections import Counter
from pathlib import Path

from tests.packaging.tree import ROOT, files, programs

MOST_LINES = 400
MOST_MODULES = 16


def modules() -> list[Path]:
    """The modules of the programs, by their path in the repository."""
    found = (path for program in programs() for path in files(ROOT / program))
    return [path.relative_to(ROOT) for path in found if path.suffix == ".py"]


def test_no_module_is_longer_than_a_reader_takes_in() -> None:
    lines = {path.as_posix(): (ROOT / path).read_text().count("\n") for path in modules()}
    assert len(lines) > 400
    assert {path for path, count in lines.items() if count > MOST_LINES} == set()


def test_no_folder_has_more_modules_than_a_reader_looks_through() -> None:
    named = (path for path in modules() if path.name != "__init__.py")
    counts = Counter(path.parent.as_posix() for path in named)
    assert {folder for folder, count in counts.items() if count > MOST_MODULES} == set()

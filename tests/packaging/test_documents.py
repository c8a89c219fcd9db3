"""The documents name only files, targets and anchors that exist."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduling.model.verdict import Reason
from tests.packaging.tree import ROOT

DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], key=lambda path: path.as_posix()
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
WORD = re.compile(r"`([^`\s]+)`")
TARGET = re.compile(r"\bmake ([a-z][a-z-]*)(?=[`\s]|$)")

every_document = pytest.mark.parametrize(
    "path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix()
)


def prose(path: Path) -> str:
    """The text without its fenced blocks."""
    return re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)


def fenced(path: Path) -> str:
    return "\n".join(re.findall(r"^```.*?^```", path.read_text(), flags=re.MULTILINE | re.DOTALL))


def anchors_of(path: Path) -> set[str]:
    """The anchors that the headings of a Markdown file get."""
    headings = re.findall(r"^#+ +(.*?) *$", prose(path), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def tracked_folders() -> set[str]:
    """The folders at the top, without those that the build writes."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    return {name for name in folders if not name.startswith(".")} - {"out", "dist", "build"}


@every_document
def test_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(prose(path)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors_of(target), link


def pages(entries: list[Any]) -> Iterator[str]:
    """The pages that a part of the site's navigation names."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            yield from pages(next(iter(entry.values())))


def test_each_page_is_in_the_navigation_of_the_site() -> None:
    named = list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    docs = ROOT / "docs"
    there = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    assert sorted([*named, "decisions/template.md"]) == sorted(there)


@every_document
def test_no_page_of_the_site_leads_out_of_it(path: Path) -> None:
    """There is nothing beside the pages where the site is."""
    docs = ROOT / "docs"
    if not path.is_relative_to(docs):
        return
    for link in LINK.findall(prose(path)):
        name = link.partition("#")[0]
        if name and not re.match(r"[a-z]+:", link):
            assert (path.parent / name).resolve().is_relative_to(docs), link


@every_document
def test_paths_exist(path: Path) -> None:
    """A word like `kube/api/client.py` begins with a folder of ours, and so names a file."""
    for word in WORD.findall(prose(path)):
        first, slash, rest = word.partition("/")
        if slash and rest and first in tracked_folders():
            file = word.partition("::")[0]
            assert list(ROOT.glob(file.rstrip("/"))), word


@every_document
def test_tests_exist_that_are_named(path: Path) -> None:
    """A word like `tests/kube/test_samples.py::test_it` names a test in a file."""
    for word in WORD.findall(prose(path)):
        file, colons, name = word.partition("::")
        if colons and file.startswith("tests/"):
            assert f"def {name}(" in (ROOT / file).read_text(), word


@every_document
def test_make_targets_exist(path: Path) -> None:
    phony = re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    in_words = [
        target
        for word in re.findall(r"`(make [^`]+)`", prose(path))
        for target in TARGET.findall(word)
    ]
    in_blocks = re.findall(r"^(?:\$ )?make ([a-z][a-z-]*)", fenced(path), flags=re.MULTILINE)
    assert set(in_words + in_blocks) <= set(phony)


def test_every_reason_is_in_the_table_of_reasons() -> None:
    """With what it means and what to do; a row of a reason that is no more misleads."""
    text = (ROOT / "docs/reasons.md").read_text()
    section = text.partition("\n## Reasons\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \|$", section, flags=re.MULTILINE)
    assert sorted(reason for reason, _, _ in rows) == sorted(each.value for each in Reason)


def test_what_an_operator_is_told_of_memory_is_what_was_measured() -> None:
    """docs/install.md has what `programs` found, for each program at rest and at 5,000 nodes."""
    measured = (ROOT / "docs" / "benchmarks.md").read_text()
    install = (ROOT / "docs" / "install.md").read_text()
    rows = re.findall(
        r"^\| (\w+) \| [\d.]+ s, [\d.]+ s \| (\d+ MB) \|.*\| (\d+ MB) \|$", measured, re.MULTILINE
    )
    said = re.findall(
        r"^\| (\w+) \| \d+m, \d+Mi \| \S+ \| (\d+ MB) \| (\d+ MB) with 5,000 nodes",
        install,
        re.MULTILINE,
    )
    assert sorted(said) == sorted(rows)
    assert len(rows) == 5
    (image,) = re.findall(r"packages of the image being (\d+ MB)", measured)
    assert f"The image adds {image} to its base" in (ROOT / "docs" / "compatibility.md").read_text()

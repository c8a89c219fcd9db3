"""docs/architecture.md has every package, and leads a newcomer to files that exist."""

import re

import pytest

from tests.packaging.map import PAGE, first_line, listed, modules, written
from tests.packaging.tree import ROOT


def test_the_list_of_packages_is_that_of_their_first_lines() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page, "make map writes it"
    assert listed().count("\n- `") > 30


def test_every_module_says_in_its_first_line_what_it_does() -> None:
    found = {path.relative_to(ROOT).as_posix(): first_line(path) for path in modules()}
    assert len(found) > 400
    assert [path for path, said in found.items() if not re.search(r"\w.*[.:]$", said)] == []


def test_the_page_is_read_in_one_sitting() -> None:
    assert len(PAGE.read_text(encoding="utf-8").split()) <= 1500


def test_a_page_without_the_marks_is_not_written() -> None:
    with pytest.raises(ValueError, match="the page lacks"):
        written("# A page\n")


def test_each_question_of_a_newcomer_leads_to_files_that_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = text.partition("\n### Questions of a newcomer\n")[2].partition("\n## ")[0]
    answers = dict(re.findall(r"^\| (\S[^|]*\?) \| ([^|]*) \|$", rows, re.MULTILINE))
    assert len(answers) >= 15
    for question, answer in answers.items():
        named = re.findall(r"`([\w/]+\.py)`", answer)
        assert named, question
        assert [path for path in named if not (ROOT / path).is_file()] == [], question

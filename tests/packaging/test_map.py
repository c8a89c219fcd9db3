"""docs/architecture.md names every file of the programs once, and none that does not exist."""

import re
from collections.abc import Iterator

from tests.packaging.tree import ROOT, files, programs

ROW = re.compile(r"^\| `(\w+/[\w/]+\.py)` \|", re.MULTILINE)
ROOM = re.compile(r"^\| `(\w+(?:/\w+)*)/`(?::[^|]*)? \|(.*)\|$", re.MULTILINE)


def mapped() -> Iterator[str]:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    section = text.partition("\n## Where is what\n")[2].partition("\n## ")[0]
    yield from ROW.findall(section)
    for room, said in ROOM.findall(section):
        yield from (f"{room}/{name}" for name in re.findall(r"`(\w+\.py)`", said))


def test_the_map_names_every_file_once() -> None:
    there = [
        path.relative_to(ROOT).as_posix()
        for program in programs()
        for path in files(ROOT / program)
        if path.suffix == ".py" and not path.name.startswith("__")
    ]
    assert sorted(mapped()) == sorted(there)


def test_each_question_of_a_newcomer_leads_to_files_that_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = text.partition("\n### Questions of a newcomer\n")[2].partition("\n## ")[0]
    answers = dict(re.findall(r"^\| (\S[^|]*\?) \| ([^|]*) \|$", table, re.MULTILINE))
    assert len(answers) >= 15
    for question, answer in answers.items():
        named = re.findall(r"`([\w/]+\.py)`", answer)
        assert named, question
        assert [path for path in named if not (ROOT / path).is_file()] == [], question

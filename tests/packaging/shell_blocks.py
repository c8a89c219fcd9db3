"""Reads the shell commands of the documents: of fenced blocks, and of words in the prose."""

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.packaging.tree import ROOT

DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")],
    key=lambda path: path.as_posix(),
)
_FENCED = re.compile(r"^( *)```([^\n]*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_HEREDOC = re.compile(r"<<-?['\"]?(\w+)['\"]?([^\n]*)\n.*?^\1$", re.MULTILINE | re.DOTALL)
_ENDS = frozenset(("|", "||", "&&", ";", "&"))
_KEYWORDS = frozenset(("do", "then", "else", "!"))


class Command(NamedTuple):
    """A simple command, where it stands and the words that it consists of."""

    page: str
    words: tuple[str, ...]

    @property
    def program(self) -> str:
        return self.words[0]


def fenced(path: Path, *languages: str) -> Iterator[str]:
    """The fenced blocks of a page in one of the languages."""
    for match in _FENCED.finditer(path.read_text(encoding="utf-8")):
        if match[2].strip() in languages:
            yield textwrap.dedent(match[3])


def scripts(path: Path) -> Iterator[str]:
    """Each block without a language as a script; of a transcript the lines that were typed."""
    for block in fenced(path, "", "sh", "bash", "shell"):
        typed = re.findall(r"^\$ (.*)$", block, re.MULTILINE)
        yield "\n".join(typed) if typed else block


def words_of(path: Path) -> Iterator[str]:
    """What stands in the prose as code, on one line."""
    prose = _FENCED.sub("", path.read_text(encoding="utf-8"))
    yield from (" ".join(each.split()) for each in _WORD.findall(prose))


def commands(page: str, script: str) -> Iterator[Command]:
    """The simple commands of a script."""
    whole = _HEREDOC.sub(r"\2", script).replace("\\\n", " ")
    for line in whole.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
        lexer.whitespace_split = True
        for words in _split(list(lexer)):
            if words:
                yield Command(page, words)


def _split(words: list[str]) -> Iterator[tuple[str, ...]]:
    """Split a line where a command ends; redirections are left out."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in _ENDS:
            yield tuple(found)
            found = []
        elif set(word) <= set("<>&") and word:
            next(rest, None)
        elif found or (word not in _KEYWORDS and not re.fullmatch(r"[A-Z_]+=.*", word)):
            found.append(word)
    yield tuple(found)


def page_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()

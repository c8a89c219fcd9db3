"""Prints what each module does, and writes the list of packages into docs/architecture.md."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.packaging.tree import ROOT, files, programs

PAGE = ROOT / "docs" / "architecture.md"
BEGIN = "<!-- The list is written by `make map`. -->\n"
DEEPEST = 3
END = "<!-- Here ends what `make map` writes. -->"


def first_line(path: Path) -> str:
    """What the module, or the package, says that it does."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0]


def modules() -> Iterator[Path]:
    """Those of the programs, as they lie."""
    found = (path for program in programs() for path in files(ROOT / program))
    yield from sorted(path for path in found if path.suffix == ".py")


def listed() -> str:
    """A line for each package, but for those inside packages of packages."""
    inits = (path.relative_to(ROOT) for path in modules() if path.name == "__init__.py")
    packages = [path for path in inits if len(path.parts) <= DEEPEST]
    lines = [f"- `{each.parent.as_posix()}/`: {first_line(ROOT / each)}" for each in packages]
    return "\n".join(lines) + "\n"


def written(page: str) -> str:
    """The page with the present list between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks {BEGIN!r} followed by {END!r}")
    return f"{before}{BEGIN}{listed()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    for each in modules():
        sys.stdout.write(f"{each.relative_to(ROOT).as_posix()}: {first_line(each)}\n")

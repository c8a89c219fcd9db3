"""Walks a page: writes the files that it shows, types its commands, and compares what they print.

A YAML block that begins with a comment of one file's name is that file. In a block without a
language a line after `$ ` is typed, and those below it are what it prints; a command without any
may print what it likes. What only reads is asked until it prints what the page shows: a gang is
there a moment after its RayCluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.waiting import wait_until
from tests.controlplane.site import Site
from tests.packaging.shell_blocks import fenced
from tests.packaging.tree import ROOT

QUEUES = ROOT / "docs" / "queues.md"
KIND = ROOT / "docs" / "kind.md"
WALKED = (QUEUES, KIND)

_NAMED = re.compile(r"# (\S+\.yaml)\n(.*)", re.DOTALL)
_READS = re.compile(r"kubectl (-n \S+ )?get |muster (status|queue|why|nodes)\b")
_AGE = re.compile(r"\b(\d+[dhms])+\b")


LEFT_OUT = {
    "kind ": "runs the nodes as containers of Docker",
    "minikube ": "the same",
    "make image ": "builds the image with Docker",
    'kubectl create -k "github.com/': "downloads KubeRay, which the testbed has built",
}
"""How commands begin that are not typed, with the reason."""


@dataclass(frozen=True)
class Step:
    """A command, and what the page says that it prints."""

    command: str
    printed: tuple[str, ...]


def files(page: Path) -> dict[str, str]:
    """The files that a page shows, by name."""
    found = (_NAMED.fullmatch(block) for block in fenced(page, "yaml"))
    return {each[1]: each[2] for each in found if each}


def steps(page: Path) -> Iterator[Step]:
    """The commands of a page in their order."""
    for block in fenced(page, ""):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *printed = part.rstrip().splitlines()
            yield Step(command, tuple(printed))


def walk(
    site: Site, page: Path, at: Path, then: Mapping[str, Callable[[], object]] | None = None
) -> int:
    """Do all that a page says in a folder, and after a command what a test has to do `then`.

    Say how many commands were typed.
    """
    for name, text in files(page).items():
        (at / name).parent.mkdir(exist_ok=True)
        (at / name).write_text(text)
    taken = [each for each in steps(page) if not reason_to_leave_out(each.command)]
    for step in taken:
        take(site, step, at)
        (then or {}).get(step.command, lambda: None)()
    return len(taken)


def reason_to_leave_out(command: str) -> str:
    """Why a command is not typed; empty where it is."""
    return next((why for start, why in LEFT_OUT.items() if command.startswith(start)), "")


def take(site: Site, step: Step, at: Path) -> None:
    """Type a command, again where it only reads, until it prints what the page shows."""
    last: list[str] = []

    def ends_well() -> bool:
        run = site.run(step.command, at, FOR_REAL="yes")
        last[:] = [f"exit code {run.returncode}", *run.stdout.splitlines(), run.stderr]
        return run.returncode == 0 and _as_shown(run.stdout.splitlines(), step)

    if _READS.match(step.command):
        asked = f"the page's answer to: {step.command}"
        wait_until(ends_well, asked, every=0.5, seen=lambda: last)
    else:
        assert ends_well(), (step, last)


def _as_shown(printed: list[str], step: Step) -> bool:
    return not step.printed or comparable(printed) == comparable(step.printed)


def comparable(lines: list[str] | tuple[str, ...]) -> list[str]:
    """Lines without what differs each time: ages, and the width of columns."""
    return [" ".join(_AGE.sub("AGE", line).split()) for line in lines]

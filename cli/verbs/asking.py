"""Decides whether to carry out a change: not in a dry run; a person confirms what it destroys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.confirming import confirm

if TYPE_CHECKING:
    from cli.write.plan import Ask


def asks(*, dry_run: bool, yes: bool) -> Ask:
    """Return who answers: nothing in a dry run, the option that agrees to all, or a person."""

    def answer(destroyed: str) -> bool:
        if dry_run:
            return False
        if destroyed and not yes:
            confirm(f"{destroyed} Go on?")
        return True

    return answer

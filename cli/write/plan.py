"""A planned write: what it does, what a person must agree to, and the function that does it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from cli.endings import StandsInTheWay

Say = Callable[[str], None]
Ask = Callable[[str], bool]
"""Told what is destroyed, empty where that is nothing; says whether to go on."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A write that is not carried out yet, by the command or by the page."""

    said: tuple[str, ...] = ()
    """What it does, in lines."""

    asks: str = ""
    """What it destroys; empty where that is nothing."""

    refused: str = ""
    """Why it is not carried out."""

    carry_out: Callable[[], Awaitable[str]] | None = None
    """Does it, and says what was done; None where there is nothing to do."""

    notes: tuple[str, ...] = field(default=())
    """What is not known, or will go wrong later."""

    def check(self) -> None:
        """Raise StandsInTheWay where it is refused."""
        if self.refused:
            raise StandsInTheWay(self.refused)

    async def do(self) -> str:
        """Carry it out, and say what was done."""
        return await self.carry_out() if self.carry_out is not None else ""


async def carry_out(plan: Plan, say: Say, ask: Ask) -> None:
    """Say what a plan does, and do it where it is agreed to; raises StandsInTheWay."""
    for line in plan.said:
        say(line)
    plan.check()
    if plan.carry_out is not None and ask(plan.asks):
        say(await plan.do())

"""`python -m tests.fuzz --minutes 10`: new mutated bodies for both HTTPS servers."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import click

from tests.fuzz.campaign import fuzz
from tests.fuzz.cases import CASES


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--minutes", default=1.0, help="Of each path.")
@click.option("--seed", type=int, help="The first seed; a random one by default.")
def main(*, names: Sequence[str], minutes: float, seed: int | None) -> None:
    """Fuzz the paths NAMES, all of them by default; ends with an error at the first breach."""
    first = secrets.randbelow(1 << 32) if seed is None else seed
    click.echo(f"seed {first}")
    for name in names or CASES:
        tally = fuzz(CASES[name], seconds=minutes * 60, first_seed=first)
        statuses = ", ".join(f"{n} {status}" for status, n in sorted(tally.statuses.items()))
        slowest = f"{tally.slowest * 1e3:.0f} ms of CPU at most"
        click.echo(f"{name}: {tally.bodies} bodies: {statuses}; {slowest}, {tally.grown >> 20} MiB")


if __name__ == "__main__":
    main()

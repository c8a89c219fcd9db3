"""`python -m tests.soak --minutes 10`: gangs live and die on a control plane full of faults."""

from __future__ import annotations

import secrets
import sys
import tempfile
from pathlib import Path

import click

from tests.soak.campaign import SoakError, soak

_FEW, _MANY = 60, 200


@click.command()
@click.option("--minutes", default=2.0, show_default=True, help="Of faults; quiet comes after.")
@click.option("--seed", type=int, help="Of the plan; a random one by default.")
@click.option("--nodes", type=int, help=f"{_MANY} by default, {_FEW} below five minutes.")
@click.option("--quiet", default=None, type=float, help="Seconds; a minute, 15 s below 5 minutes.")
def main(*, minutes: float, seed: int | None, nodes: int | None, quiet: float | None) -> None:
    """Run a soak; ends with 1 at the first invariant that does not hold."""
    chosen = secrets.randbelow(1 << 32) if seed is None else seed
    short = minutes < 5
    directory = Path(tempfile.mkdtemp(prefix="muster-soak-"))
    try:
        soak(
            chosen,
            minutes,
            nodes or (_FEW if short else _MANY),
            directory / "files",
            click.echo,
            quiet or (15.0 if short else 60.0),
        )
    except SoakError as error:
        click.echo(str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()

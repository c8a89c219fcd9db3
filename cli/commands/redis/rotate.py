"""`muster redis rotate`: replaces the keys of the built-in Redis, in two calls."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING

import click

from cli.confirming import confirm
from cli.endings import StandsInTheWay
from cli.options import cluster_options, epilog, run_writing

if TYPE_CHECKING:
    from cli.read.target import Target
    from cli.write.writer import Writer

FILES = {"muster-redis-keys": "key", "muster-redis-passwords": "password"}
"""Secrets, and the entry of each that is rotated."""
NEXT = ".next"


@click.command(epilog=epilog("muster redis rotate", "muster redis rotate --yes"))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@cluster_options
def command(*, target: Target, yes: bool) -> None:
    """Rotate the key of which passwords of users are derived, and the administrators' password.

    The first call adds a second one of each beside the first: servers take both, Secrets get the
    new password, heads take it when their container starts anew. The second call drops the first,
    and is refused as long as anything may need it.
    """

    async def work(writer: Writer) -> None:
        from cli.read.home import find_home  # noqa: PLC0415 - a start must not pay for it
        from cli.read.ray.redis import read_keys, read_redis  # noqa: PLC0415
        from cli.report.redis import not_yet  # noqa: PLC0415

        home = await find_home(writer.reader)
        there = {name: (await read_keys(writer.reader, home, name)).data for name in FILES}
        begun = [name for name, entry in FILES.items() if f"{entry}{NEXT}" in there[name]]
        if len(begun) < len(FILES):
            if not yes:
                confirm("Add a second key and password beside the first ones?")
            for name in {*FILES} - {*begun}:
                await _write(writer, home, name, {f"{FILES[name]}{NEXT}": _encoded()})
            click.echo("added; call it again once all Secrets are written: muster redis status")
            return
        if why := not_yet(await read_redis(writer.reader, home)):
            raise StandsInTheWay(f"the first key is still needed: {why}; call it again later")
        if not yes:
            confirm("Drop the first key and password?")
        for name, entry in FILES.items():
            following = there[name][f"{entry}{NEXT}"]
            await _write(writer, home, name, {entry: following, f"{entry}{NEXT}": None})
        click.echo("dropped; the new key and password are the only ones")

    run_writing(target, work)


def _encoded() -> str:
    return base64.b64encode(secrets.token_hex(32).encode()).decode()


async def _write(writer: Writer, home: str, name: str, data: dict[str, str | None]) -> None:
    from kube.api.resources import SECRETS  # noqa: PLC0415

    failed = await writer.merge_patch(SECRETS.path(home, name), {"data": data})
    if failed is not None:
        raise StandsInTheWay(f"Secret {home}/{name} was not changed: {failed.why}")

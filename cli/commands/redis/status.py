"""`muster redis status`: the servers of the built-in Redis, and what Ray clusters keep in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.options import cluster_options, epilog, output_option, run

if TYPE_CHECKING:
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.redis import RedisReport


@click.command(
    epilog=epilog(
        "muster redis status",
        "muster redis status -o json | jq -r '.clusters[] | [.namespace, .name, .bytes] | @tsv'",
    )
)
@cluster_options
@output_option
@click.pass_context
def command(context: click.Context, target: Target, output: str) -> None:
    """Print the primary, how far replicas are behind it, memory, and use by Ray cluster.

    Read from the report that muster-redis writes every 15 s; use is measured every 5 minutes.
    """
    from cli.read.home import find_home  # noqa: PLC0415 - a start without work must not pay for it
    from cli.read.ray.redis import read_redis  # noqa: PLC0415
    from cli.show.output import show  # noqa: PLC0415
    from cli.show.redis import table  # noqa: PLC0415

    async def work(reader: Reader) -> RedisReport:
        return await read_redis(reader, await find_home(reader))

    report = run(context, target, work)
    show(report, output, table(report, output))

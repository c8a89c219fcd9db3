"""`muster dashboard`: a page in the browser with queues, gangs, nodes and holes, always fresh."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING

import click

from cli.endings import Unusable
from cli.options import cluster_options, epilog, run

if TYPE_CHECKING:
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.status import StatusReport


@click.command(epilog=epilog("muster dashboard", "muster dashboard --port 8400 --context prod"))
@cluster_options
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8400,
    show_default=True,
    help="Where the page is, on this machine alone; 0 takes any free port.",
)
@click.option(
    "--period",
    type=click.FloatRange(min=1, max=3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the cluster is read; less often where it is large.",
)
@click.pass_context
def command(context: click.Context, target: Target, port: int, period: float) -> None:
    """Serve one page that shows queues, gangs, nodes and what still fits, until Ctrl-C.

    It is served on 127.0.0.1 alone and has no log-in: it shows what you may read.
    """
    run(context, target, lambda reader: _serve(reader, port, period))


async def _serve(reader: Reader, port: int, period: float) -> None:
    # The server takes longer to import than a command that only prints may take.
    from cli.page.feed import Feed  # noqa: PLC0415
    from cli.page.server import ADDRESS, serving  # noqa: PLC0415
    from cli.show.output import not_taken  # noqa: PLC0415

    feed = Feed(lambda: _read(reader), period)
    try:
        async with serving(feed, port) as taken:
            click.echo(f"http://{ADDRESS}:{taken}/")
            await feed.run()
    except BrokenPipeError:
        not_taken()
    except OSError as error:
        raise Unusable(f"--port {port} cannot be used: {error.strerror}") from error


async def _read(reader: Reader) -> StatusReport:
    from cli.read.cluster import read_gangs_anywhere  # noqa: PLC0415
    from cli.report.snapshot import GANGS, NODES, PODS, QUEUES  # noqa: PLC0415
    from cli.report.status import status_report  # noqa: PLC0415

    found = await read_gangs_anywhere(reader, GANGS, QUEUES, NODES, PODS)
    report = await asyncio.to_thread(status_report, found)
    gc.collect()  # it is off while a command runs, and this one does not end
    return report

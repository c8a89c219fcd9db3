"""`muster dashboard`: a page in the browser with queues, gangs, nodes and holes, always fresh."""

from __future__ import annotations

import gc
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.endings import Unusable
from cli.options import (
    add_options,
    cluster_options,
    complete_files,
    end,
    epilog,
    run_alone,
    run_client,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from cli.page.in_cluster import InCluster
    from cli.page.reading.links import Link
    from cli.read.target import Target
    from kube.api.client import Client

_IN_CLUSTER = (
    click.option(
        "--in-cluster",
        is_flag=True,
        help="Serve others, over TLS: each request bears the token of its person.",
    ),
    click.option(
        "--listen",
        default="0.0.0.0",  # noqa: S104 - a Service calls the pod's address
        show_default=True,
        help="In the cluster: the address where it listens.",
    ),
    click.option(
        "--certificate", shell_complete=complete_files, help="In the cluster: a file of PEM."
    ),
    click.option("--key", shell_complete=complete_files, help="In the cluster: its key."),
    click.option("--api-server", help="In the cluster: default: KUBERNETES_SERVICE_HOST."),
    click.option(
        "--api-server-ca",
        shell_complete=complete_files,
        help="In the cluster: default: that of the pod's account.",
    ),
    click.option(
        *("--origin", "origins"),
        multiple=True,
        help="In the cluster: https://NAME of a proxy in front that changes Host.",
    ),
)


def _in_cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return add_options(command, _IN_CLUSTER)


@click.command(
    epilog=epilog(
        "muster dashboard",
        "muster dashboard --port 8400 --context prod",
        "muster dashboard --in-cluster --certificate tls.crt --key tls.key",
    )
)
@cluster_options
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8400,
    show_default=True,
    help="Where the page is; 0 takes any free port.",
)
@click.option(
    "--period",
    type=click.FloatRange(min=1, max=3600),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the cluster is read; less often where it is large.",
)
@click.option(
    *("--link", "links"),
    multiple=True,
    envvar="MUSTER_LINKS",
    metavar="NAME=TEMPLATE",
    help="Beside each Ray cluster: an address with {namespace} and {name}. Or MUSTER_LINKS.",
)
@_in_cluster_options
def command(
    *,
    target: Target,
    port: int,
    period: float,
    links: tuple[str, ...],
    in_cluster: bool,
    **options: Any,
) -> None:
    """Serve a page that shows and manages gangs, Ray clusters and queues, until Ctrl-C.

    It is served on 127.0.0.1 alone and shows what you may read. To write takes the secret in the
    address that is printed. With --in-cluster it has no rights of its own, and asks for a token.
    """
    shown = _links(links)
    if in_cluster:
        run_alone(lambda: _serve_others(replace(_settings(target, port, **options), links=shown)))
    else:
        run_client(target, lambda client, namespace: _serve(client, namespace, port, period, shown))


def _links(said: tuple[str, ...]) -> tuple[Link, ...]:
    from cli.page.reading.links import read_links  # noqa: PLC0415

    try:
        return read_links(said)
    except Unusable as error:
        end(error)


async def _serve(
    client: Client, namespace: str, port: int, period: float, links: tuple[Link, ...]
) -> None:
    # The server takes longer to import than a command that only prints may take.
    from cli.page.feed import Feed, read_status  # noqa: PLC0415
    from cli.page.on_laptop import laptop_page  # noqa: PLC0415
    from cli.page.safety.guards import ADDRESS, new_secret  # noqa: PLC0415
    from cli.page.server import serving  # noqa: PLC0415
    from cli.read.reader import ApiReader  # noqa: PLC0415
    from cli.show.output import not_taken  # noqa: PLC0415

    reader, secret = ApiReader(client, namespace), new_secret()
    feed = Feed(lambda: read_status(reader), period)
    try:
        async with serving(laptop_page(client, namespace, secret, feed, links), port) as taken:
            click.echo(f"http://{ADDRESS}:{taken}/#secret={secret}")
            await feed.run()
    except BrokenPipeError:
        not_taken()
    except OSError as error:
        raise Unusable(f"--port {port} cannot be used: {error.strerror}") from error


def _settings(
    target: Target,
    port: int,
    *,
    listen: str,
    certificate: str | None,
    key: str | None,
    api_server: str | None,
    api_server_ca: str | None,
    origins: tuple[str, ...],
) -> InCluster:
    from cli.page.in_cluster import InCluster  # noqa: PLC0415
    from kube.api.kubeconfig_entries import SERVICE_ACCOUNT  # noqa: PLC0415

    if not certificate or not key:
        raise click.UsageError("--in-cluster needs --certificate and --key: tokens pass through it")
    server = api_server or _api_server()
    ca = api_server_ca or (None if api_server else str(SERVICE_ACCOUNT / "ca.crt"))
    return InCluster(
        listen, port, Path(certificate), Path(key), server, ca, target.timeout, origins
    )


def _api_server() -> str:
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{each}", "") for each in ("HOST", "PORT"))
    if not host or not port:
        raise click.UsageError("--in-cluster outside a pod needs --api-server")
    return f"https://{f'[{host}]' if ':' in host else host}:{port}"


async def _serve_others(at: InCluster) -> None:
    from cli.page.in_cluster import serving_in_cluster  # noqa: PLC0415
    from cli.stderr_log import log_to_stderr  # noqa: PLC0415
    from runtime.http_server import stop_signals, until  # noqa: PLC0415

    gc.enable()  # a command has it off, and this one does not end
    log_to_stderr()
    stop = stop_signals()
    try:
        async with serving_in_cluster(at) as (port, tasks):
            click.echo(f"https://{at.address}:{port}/")
            await until(stop, tasks)
    except OSError as error:
        raise Unusable(f"--port {at.port} cannot be used: {error.strerror}") from error

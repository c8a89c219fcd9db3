"""`python -m certs issue | bootstrap | secret`: certificates into a directory or the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import click

from certs.bootstrap import Target, bootstrap
from certs.chain import (
    CertificateError,
    ServerNames,
    expires_at,
    issue_client,
    issue_leaf,
    new_authority,
    service_names,
)
from certs.files import write_client, write_pair
from certs.keep import FAULTS, keep
from certs.secret import Wanted, ensure_secret
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.objects.names import DEFAULT_NAMESPACE
from runtime.http_server import stop_signals

_KUBECONFIG = "Default: KUBECONFIG, then the service account."
_SECONDS = click.FloatRange(min=1.0)
_EVERY = "Do not end, and look again every so many seconds."


@click.group()
def main() -> None:
    """Make the certificates that Muster's HTTPS servers show."""


@main.command()
@click.option("--dir", "directory", type=click.Path(path_type=Path, file_okay=False), required=True)
@click.option("--dns", multiple=True, help="A name under which the server is called; repeatable.")
@click.option("--ip", "addresses", multiple=True, help="An address likewise; repeatable.")
@click.option("--client", help="The name in a client certificate, written beside the server's.")
def issue(
    directory: Path, dns: tuple[str, ...], addresses: tuple[str, ...], client: str | None
) -> None:
    """Write ca.crt, tls.crt and tls.key of a new authority into a directory.

    With --client also client.crt and client.key, for a server that asks its callers for one.
    """
    now = _now()
    try:
        names = ServerNames(dns, tuple(_address(text) for text in addresses))
        authority = new_authority("muster-ca", now)
        leaf = issue_leaf(authority, names, now)
        write_pair(directory, leaf, authority.certificate)
        if client is not None:
            write_client(directory, issue_client(authority, client, now))
    except (CertificateError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{directory}: valid until {expires_at(leaf.certificate):%Y-%m-%d %H:%M} UTC")


@main.command("bootstrap")
@click.option("--namespace", default=DEFAULT_NAMESPACE, show_default=True)
@click.option("--service", default="muster-webhook", show_default=True)
@click.option("--secret", default="muster-webhook-tls", show_default=True)
@click.option(
    "--configuration",
    "configurations",
    multiple=True,
    default=("muster-webhook",),
    show_default=True,
    help="A MutatingWebhookConfiguration; repeatable.",
)
@click.option("--validating", multiple=True, help="A ValidatingWebhookConfiguration; repeatable.")
@click.option("--kubeconfig", help=_KUBECONFIG)
@click.option("--every", type=_SECONDS, help=_EVERY)
def into_the_cluster(
    *,
    namespace: str,
    service: str,
    secret: str,
    configurations: tuple[str, ...],
    validating: tuple[str, ...],
    kubeconfig: str | None,
    every: float | None,
) -> None:
    """Create the Secret unless it is there, and fill caBundle of the configurations."""
    target = Target(namespace, service, secret, configurations, validating)

    async def work(client: Client) -> str:
        return "\n".join(await bootstrap(client, target, _now()))

    _run(kubeconfig, work, every)


@main.command("secret")
@click.option("--namespace", default=DEFAULT_NAMESPACE, show_default=True)
@click.option("--service", default="muster-extender", show_default=True)
@click.option("--secret", default="muster-extender-tls", show_default=True)
@click.option("--client", default="system:kube-scheduler", show_default=True)
@click.option("--ip", "addresses", multiple=True, help="An address of the server; repeatable.")
@click.option("--kubeconfig", help=_KUBECONFIG)
@click.option("--every", type=_SECONDS, help=_EVERY)
def into_a_secret(
    *,
    namespace: str,
    service: str,
    secret: str,
    client: str,
    addresses: tuple[str, ...],
    kubeconfig: str | None,
    every: float | None,
) -> None:
    """Create the Secret of a server that asks its callers for a certificate, unless it is there.

    It holds what `issue --client` writes, for the Service's names and further addresses.
    """
    try:
        called = service_names(service, namespace).dns
        names = ServerNames(called, tuple(_address(text) for text in addresses))
    except CertificateError as error:
        raise click.ClickException(str(error)) from error
    wanted = Wanted(namespace, secret, names, client)

    async def work(client: Client) -> str:
        return (await ensure_secret(client, wanted, _now())).said(wanted)

    _run(kubeconfig, work, every)


def _run(
    kubeconfig: str | None, work: Callable[[Client], Awaitable[str]], every: float | None
) -> None:
    """Do something in the cluster, once or for ever; what goes wrong is said without a trace."""

    async def connected() -> None:
        access = await load_access(kubeconfig, setting="--kubeconfig")
        async with Client(access, user_agent="muster-certs") as client:
            if every is None:
                click.echo(await work(client))
            else:
                await keep(partial(work, client), every, stop_signals(), click.echo)

    try:
        asyncio.run(connected())
    except FAULTS as error:
        raise click.ClickException(str(error)) from error


def _now() -> datetime:
    return datetime.now(UTC)


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(text)
    except ValueError as error:
        raise CertificateError(f"--ip {text!r}: {error}") from error


if __name__ == "__main__":
    main(prog_name="python -m certs")

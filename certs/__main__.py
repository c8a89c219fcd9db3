"""`python -m certs issue | bootstrap`: certificates into a directory, or into the cluster."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import click

from certs.bootstrap import BootstrapError, Target, bootstrap
from certs.chain import (
    CertificateError,
    ServerNames,
    expires_at,
    issue_client,
    issue_leaf,
    new_authority,
)
from certs.files import write_client, write_pair
from kube.auth import load_access
from kube.client import Client
from kube.errors import KubeError
from kube.names import DEFAULT_NAMESPACE


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
    now = datetime.now(UTC)
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
@click.option("--configuration", default="muster-webhook", show_default=True)
@click.option("--kubeconfig", help="Default: KUBECONFIG, then the service account.")
def into_the_cluster(
    namespace: str, service: str, secret: str, configuration: str, kubeconfig: str | None
) -> None:
    """Create the Secret unless it is there, and fill caBundle of the webhook configuration."""
    target = Target(namespace, service, secret, configuration)
    try:
        done = asyncio.run(_bootstrap(target, kubeconfig))
    except (KubeError, CertificateError, BootstrapError) as error:
        raise click.ClickException(str(error)) from error
    click.echo("\n".join(done))


async def _bootstrap(target: Target, kubeconfig: str | None) -> list[str]:
    access = await load_access(kubeconfig)
    async with Client(access, user_agent="muster-certs") as client:
        return await bootstrap(client, target, datetime.now(UTC))


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(text)
    except ValueError as error:
        raise CertificateError(f"--ip {text!r}: {error}") from error


if __name__ == "__main__":
    main(prog_name="python -m certs")

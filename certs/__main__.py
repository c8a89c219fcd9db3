"""`python -m certs issue | bootstrap | secret`: certificates into a directory or the cluster."""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Callable
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any

import click

from certs import rolling, standing
from certs.chain import (
    CertificateError,
    ServerNames,
    expires_at,
    issue_client,
    issue_leaf,
    new_authority,
    service_names,
)
from certs.cluster import MUTATING, VALIDATING, Cluster, Place
from certs.environment import NAMESPACE, Namespace, check_environment
from certs.files import write_client, write_pair
from certs.keeper import FAULTS, CertsError, Keeper, Kind, OfExtender, OfWebhook
from certs.program import Replica, Staying, utc_now
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.objects.names import DEFAULT_NAMESPACE
from runtime.http_server import stop_signals
from runtime.program import log_json

_FILES_LIFETIME = timedelta(days=365)
"""Validity of files in a directory, where nothing renews them: people have a year."""

_NAMESPACE = click.option(
    "--namespace",
    type=Namespace(),
    default=DEFAULT_NAMESPACE,
    show_default=True,
    envvar=NAMESPACE,
)

_SECONDS = click.FloatRange(min=1.0, max=3600.0)


def _staying(lease: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of a command that may stay; they come to it as `staying`."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def gathered(
            *,
            every: float | None,
            lease: str,
            identity: str | None,
            health_address: str,
            health_port: int | None,
            **others: Any,
        ) -> None:
            health = None if health_port is None else (health_address, health_port)
            own = identity or f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
            stays = None if every is None else Staying(every, lease, own, health)
            command(staying=stays, **others)

        gathered.__doc__ = command.__doc__
        for option in reversed(_options(lease)):
            gathered = option(gathered)
        return gathered

    return decorate


def _options(lease: str) -> tuple[Callable[[Callable[..., None]], Callable[..., None]], ...]:
    every = "Do not end; one of all replicas looks again every so many seconds."
    identity = "The name of this replica in the Lease. Default: the host's, and something random."
    health = "Where --every answers /livez, /readyz and /metrics. Default: nowhere."
    return (
        click.option("--kubeconfig", help="Default: KUBECONFIG, then the service account."),
        click.option("--every", type=_SECONDS, help=every),
        click.option(
            "--lease", default=lease, show_default=True, help="Held by the one that writes."
        ),
        click.option("--identity", help=identity),
        click.option("--health-address", default="0.0.0.0", show_default=True),  # noqa: S104
        click.option("--health-port", type=click.IntRange(0, 65535), help=health),
    )


@click.group()
def main() -> None:
    """Make the certificates that Muster's HTTPS servers show."""
    check_environment(os.environ)


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
    now = utc_now()
    try:
        names = ServerNames(dns, tuple(_address(text) for text in addresses))
        authority = new_authority("muster-ca", now)
        leaf = issue_leaf(authority, names, now, _FILES_LIFETIME)
        write_pair(directory, leaf, authority.certificate)
        if client is not None:
            write_client(directory, issue_client(authority, client, now, _FILES_LIFETIME))
    except (CertificateError, OSError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{directory}: valid until {expires_at(leaf.certificate):%Y-%m-%d %H:%M} UTC")


@main.command("bootstrap")
@_NAMESPACE
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
@_staying("muster-certs")
def into_the_cluster(
    *,
    namespace: str,
    service: str,
    secret: str,
    configurations: tuple[str, ...],
    validating: tuple[str, ...],
    kubeconfig: str | None,
    staying: Staying | None,
) -> None:
    """Create or renew the Secret, and fill caBundle of the configurations."""
    mutating = [(MUTATING, name) for name in configurations]
    filled = (*mutating, *((VALIDATING, name) for name in validating))
    wanted = rolling.Wanted(f"{secret}-ca", service_names(service, namespace))
    _run(kubeconfig, Place(namespace, secret, service, filled), OfWebhook(wanted), staying)


@main.command("secret")
@_NAMESPACE
@click.option("--service", default="muster-extender", show_default=True)
@click.option("--secret", default="muster-extender-tls", show_default=True)
@click.option("--client", default="system:kube-scheduler", show_default=True)
@click.option("--ip", "addresses", multiple=True, help="An address of the server; repeatable.")
@_staying("muster-extender-certs")
def into_a_secret(
    *,
    namespace: str,
    service: str,
    secret: str,
    client: str,
    addresses: tuple[str, ...],
    kubeconfig: str | None,
    staying: Staying | None,
) -> None:
    """Create or renew the Secret of a server that asks its callers for a certificate.

    It holds what `issue --client` writes, for the Service's names and further addresses, and the
    key of the authority, which stays.
    """
    try:
        called = service_names(service, namespace).dns
        names = ServerNames(called, tuple(_address(text) for text in addresses))
    except CertificateError as error:
        raise click.ClickException(str(error)) from error
    wanted = standing.Wanted(f"{secret}-ca", names, client)
    _run(kubeconfig, Place(namespace, secret, service), OfExtender(wanted), staying)


def _run(kubeconfig: str | None, place: Place, kind: Kind, staying: Staying | None) -> None:
    """Look once or for ever; what goes wrong is said without a trace."""

    async def connected() -> None:
        access = await load_access(kubeconfig, setting="--kubeconfig")
        async with Client(access, user_agent="muster-certs") as client:
            cluster = Cluster(client, place)
            if staying is None:
                await _once(Keeper(cluster, kind, now=utc_now))
            else:
                log_json("info")
                await Replica(client, cluster, kind, staying).run(stop_signals())

    try:
        asyncio.run(connected())
    except (*FAULTS, OSError) as error:
        raise click.ClickException(str(error)) from error


async def _once(keeper: Keeper) -> None:
    look = await keeper.look()
    click.echo("\n".join(look.said))
    faults = ((look.fault,) if look.fault else ()) + keeper.refused
    if faults:
        raise CertsError("; ".join(faults))


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(text)
    except ValueError as error:
        raise CertificateError(f"--ip {text!r}: {error}") from error


if __name__ == "__main__":
    main(prog_name="python -m certs")

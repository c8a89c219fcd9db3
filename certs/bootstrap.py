"""How do a webhook's certificate and its authority get into the cluster the first time?

The Secret is the truth: whoever creates it first wins, everybody else uses what is in it, so any
number of these may run at once and again. Afterwards the authority's certificate is put into the
webhook's configuration. The authority's key is never stored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from certs.chain import (
    CertificateError,
    Pair,
    ServerNames,
    belong_together,
    expires_at,
    issue_leaf,
    new_authority,
    serves,
    service_names,
    signed_by,
)
from certs.files import CA_FILE, CERTIFICATE_FILE, KEY_FILE
from kube.client import Client, Resource
from kube.errors import Conflict, NotFound

SECRETS = Resource(group="", version="v1", plural="secrets", namespaced=True)
CONFIGURATIONS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    plural="mutatingwebhookconfigurations",
    namespaced=False,
)


class BootstrapError(Exception):
    """The cluster holds something that cannot be used; the text says what, and what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whose certificate it is, and where it goes."""

    namespace: str
    service: str
    secret: str
    configuration: str

    @property
    def names(self) -> ServerNames:
        """The names by which the API server calls the Service."""
        return service_names(self.service, self.namespace)


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


class _ServiceReference(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _ClientConfig(msgspec.Struct, frozen=True, rename="camel"):
    service: _ServiceReference | None = None
    ca_bundle: str | None = None


class _Webhook(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(msgspec.Struct, frozen=True):
    webhooks: list[_Webhook] | None = None


async def bootstrap(client: Client, target: Target, now: datetime) -> list[str]:
    """Make the Secret if there is none, then fill caBundle; returns what was done, in words."""
    authority, created = await _authority(client, target, now)
    filled = await _fill(client, target, authority)
    return [
        f"Secret {target.namespace}/{target.secret} {'created' if created else 'kept'}",
        *(f"caBundle of webhook {name} set" for name in filled),
    ]


async def _authority(client: Client, target: Target, now: datetime) -> tuple[bytes, bool]:
    """Return the authority's certificate of the Secret, and whether the Secret was made now."""
    found = await _read(client, target)
    if found is not None:
        return _checked(found, target, now), False
    authority = new_authority(f"{target.service}-ca", now)
    leaf = issue_leaf(authority, target.names, now)
    try:
        await client.create(
            SECRETS.path(target.namespace), _secret(target, leaf, authority.certificate)
        )
    except Conflict:
        # Another one was quicker: its pair counts.
        return await _authority(client, target, now)
    return authority.certificate, True


async def _read(client: Client, target: Target) -> _Secret | None:
    try:
        return await client.get(SECRETS.path(target.namespace, target.secret), as_=_Secret)
    except NotFound as error:
        # A NotFound without this reason is about the path, not the Secret.
        if error.reason != "NotFound":
            raise
        return None


def _secret(target: Target, leaf: Pair, authority: bytes) -> Mapping[str, Any]:
    data = {CA_FILE: authority, CERTIFICATE_FILE: leaf.certificate, KEY_FILE: leaf.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": target.secret,
            "namespace": target.namespace,
            "labels": {"app.kubernetes.io/part-of": "muster"},
        },
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(content).decode() for name, content in data.items()},
    }


def _checked(secret: _Secret, target: Target, now: datetime) -> bytes:
    """Return the authority's certificate if all in the Secret fits; else say what does not."""
    fault = _fault(secret, target, now)
    if fault:
        name = f"{target.namespace}/{target.secret}"
        raise BootstrapError(f"Secret {name}: {fault}; delete the Secret to have it made anew")
    return _content(secret, CA_FILE)


def _fault(secret: _Secret, target: Target, now: datetime) -> str:
    try:
        authority = _content(secret, CA_FILE)
        pair = Pair(_content(secret, CERTIFICATE_FILE), _content(secret, KEY_FILE))
        faults = {
            f"{KEY_FILE} is not the key of {CERTIFICATE_FILE}": not belong_together(pair),
            f"{CA_FILE} did not sign {CERTIFICATE_FILE}": not signed_by(
                pair.certificate, authority
            ),
            f"{CERTIFICATE_FILE} is not for {', '.join(target.names.dns)}": not serves(
                pair.certificate, target.names
            ),
            f"{CERTIFICATE_FILE} has expired": now >= expires_at(pair.certificate),
        }
    except CertificateError as error:
        return str(error)
    return next((fault for fault, holds in faults.items() if holds), "")


def _content(secret: _Secret, name: str) -> bytes:
    encoded = (secret.data or {}).get(name)
    if not encoded:
        raise CertificateError(f"{name} is missing")
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise CertificateError(f"{name} is not base64") from error


async def _fill(client: Client, target: Target, authority: bytes) -> list[str]:
    """Put the authority into the webhooks that call our Service; returns those that changed."""
    path = CONFIGURATIONS.path(name=target.configuration)
    configuration = await client.get(path, as_=_Configuration)
    bundle = base64.b64encode(authority).decode()
    ours = [
        (index, webhook)
        for index, webhook in enumerate(configuration.webhooks or ())
        if webhook.client_config.service == _ServiceReference(target.namespace, target.service)
    ]
    if not ours:
        raise BootstrapError(
            f"MutatingWebhookConfiguration {target.configuration}: no webhook calls Service"
            f" {target.namespace}/{target.service}"
        )
    stale = [each for each in ours if each[1].client_config.ca_bundle != bundle]
    if stale:
        await client.json_patch(path, [step for each in stale for step in _steps(*each, bundle)])
    return [webhook.name for _, webhook in stale]


def _steps(index: int, webhook: _Webhook, bundle: str) -> list[dict[str, Any]]:
    # The test: somebody may have reordered the webhooks since they were read.
    return [
        {"op": "test", "path": f"/webhooks/{index}/name", "value": webhook.name},
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle},
    ]

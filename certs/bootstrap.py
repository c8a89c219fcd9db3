"""Brings a webhook's certificate and its authority into the cluster.

First into a Secret; then the authority's certificate is put into the webhook's configurations.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from certs.chain import service_names
from certs.secret import BootstrapError, Wanted, ensure_secret
from kube.api.client import Client, Resource


def _configurations(plural: str) -> Resource:
    group = "admissionregistration.k8s.io"
    return Resource(group=group, version="v1", plural=plural, namespaced=False)


MUTATING = _configurations("mutatingwebhookconfigurations")
VALIDATING = _configurations("validatingwebhookconfigurations")


@dataclass(frozen=True, slots=True)
class Target:
    """The service that a certificate is for, and where the certificate goes."""

    namespace: str
    service: str
    secret: str
    configurations: tuple[str, ...]
    validating: tuple[str, ...] = ()

    @property
    def wanted(self) -> Wanted:
        """The Secret, for the names by which the API server calls the Service."""
        return Wanted(self.namespace, self.secret, service_names(self.service, self.namespace))

    @property
    def to_fill(self) -> list[tuple[Resource, str]]:
        """The configurations that call the service, by resource and name."""
        mutating = [(MUTATING, name) for name in self.configurations]
        return [*mutating, *((VALIDATING, name) for name in self.validating)]


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
    kept = await ensure_secret(client, target.wanted, now)
    said = [kept.said(target.wanted)]
    for resource, name in target.to_fill:
        filled = await _fill(client, target, resource.path(name=name), kept.authority)
        said += [f"caBundle of webhook {each} set" for each in filled]
    return said


async def _fill(client: Client, target: Target, path: str, authority: bytes) -> list[str]:
    """Put the authority into the webhooks that call our Service; returns those that changed."""
    configuration = await client.get(path, as_=_Configuration)
    bundle = base64.b64encode(authority).decode()
    ours = [
        (index, webhook)
        for index, webhook in enumerate(configuration.webhooks or ())
        if webhook.client_config.service == _ServiceReference(target.namespace, target.service)
    ]
    if not ours:
        raise BootstrapError(
            f"{path}: no webhook calls Service {target.namespace}/{target.service}"
        )
    stale = [each for each in ours if each[1].client_config.ca_bundle != bundle]
    if stale:
        await client.json_patch(path, [step for each in stale for step in _steps(*each, bundle)])
    return [webhook.name for _, webhook in stale]


def _steps(index: int, webhook: _Webhook, bundle: str) -> list[dict[str, Any]]:
    # The test: the webhooks may have been reordered since they were read.
    return [
        {"op": "test", "path": f"/webhooks/{index}/name", "value": webhook.name},
        {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle},
    ]

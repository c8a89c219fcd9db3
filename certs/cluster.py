"""Reads and writes the Secret and the webhooks' configurations.

Configurations are read before the Secret, and every write names the version that was read. So a
process that was held up between the two can never overwrite what another process has replaced
since: the version is another one by then.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import msgspec

from certs.chain import CertificateError, certificates_in
from certs.held import OWNER, OWNER_LABEL, Held, data_of, files_of, notes_of, read_held
from certs.rolling import NOTHING, Bundle, Withheld
from kube.api.client import Client
from kube.api.errors import Forbidden, KubeError, NotFound
from kube.api.resources import SECRETS, Resource

REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False)

INJECTED = "cert-manager.io/inject-"
"""Annotations of a configuration of which cert-manager's ca-injector fills caBundle."""


def _configurations(plural: str) -> Resource:
    group = "admissionregistration.k8s.io"
    return Resource(group=group, version="v1", plural=plural, namespaced=False)


MUTATING = _configurations("mutatingwebhookconfigurations")
VALIDATING = _configurations("validatingwebhookconfigurations")


# ---- what is read


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None


class _ServiceReference(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _ClientConfig(msgspec.Struct, frozen=True, rename="camel"):
    service: _ServiceReference | None = None
    url: str | None = None
    ca_bundle: str | None = None


class _Webhook(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    client_config: _ClientConfig = _ClientConfig()


class _Configuration(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    webhooks: list[_Webhook] | None = None


class _Secret(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    data: dict[str, str] | None = None


class _Review(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


@dataclass(frozen=True, slots=True)
class Calling:
    """A webhook of a configuration that calls our Service."""

    path: str
    """The path of the configuration."""
    version: str
    index: int
    name: str
    bundle: Bundle
    """What it trusts; what is no certificate does not count."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the cluster holds."""

    held: Held | None
    version: str = ""
    calling: tuple[Calling, ...] = ()
    faults: tuple[str, ...] = ()
    """What keeps a configuration from being filled."""
    unread: tuple[str, ...] = ()
    """Configurations that could not be read, and why."""
    resting: Mapping[str, str] = field(default_factory=dict)
    """What was refused and is not to be written now: why, by path."""

    @property
    def bundles(self) -> tuple[Bundle, ...]:
        """What each webhook trusts."""
        return tuple(each.bundle for each in self.calling)

    @property
    def writable(self) -> tuple[Calling, ...]:
        """The webhooks that may be written now."""
        return tuple(each for each in self.calling if each.path not in self.resting)

    @property
    def withheld(self) -> Withheld:
        """What cannot be given anything now."""
        if not self.unread and not self.resting:
            return NOTHING
        bundles = [each.bundle for each in self.calling if each.path in self.resting]
        return Withheld(tuple(bundles), unread=bool(self.unread))


@dataclass(frozen=True, slots=True)
class Place:
    """Where the certificates of a server go."""

    namespace: str
    secret: str
    service: str
    configurations: tuple[tuple[Resource, str], ...] = field(default=())
    """Which call the service, by resource and name."""

    @property
    def title(self) -> str:
        """How people call the Secret."""
        return f"{self.namespace}/{self.secret}"


class Cluster:
    """The objects of one server's certificates."""

    def __init__(self, client: Client, place: Place) -> None:
        self._client = client
        self.place = place
        self.path = SECRETS.path(place.namespace, place.secret)
        """The path of the Secret."""

    async def see(self) -> Seen:
        """Read all of it, the Secret last; a configuration that cannot be read is told of."""
        seen = await self._configurations()
        secret = await self._secret()
        if secret is None:
            return seen
        meta = secret.metadata
        held = read_held(secret.data, meta.labels or {}, meta.annotations or {})
        return replace(seen, held=held, version=meta.resource_version)

    async def _configurations(self) -> Seen:
        calling: list[Calling] = []
        faults: list[str] = []
        unread: list[str] = []
        for resource, name in self.place.configurations:
            path = resource.path(name=name)
            try:
                calling += await self._calling(path)
            except _Unusable as error:
                faults.append(str(error))
            except KubeError as error:
                unread.append(f"{path}: {error}")
        return Seen(None, "", tuple(calling), tuple(faults), tuple(unread))

    async def _secret(self) -> _Secret | None:
        try:
            return await self._client.get(self.path, as_=_Secret)
        except NotFound as error:
            _expect_about_the_object(error)
            return None

    async def _calling(self, path: str) -> list[Calling]:
        try:
            found = await self._client.get(path, as_=_Configuration)
        except NotFound as error:
            _expect_about_the_object(error)
            raise _Unusable(f"{path}: there is no such configuration") from None
        others = [each for each in found.metadata.annotations or () if each.startswith(INJECTED)]
        if others:
            raise _Unusable(f"{path}: annotation {others[0]} has cert-manager fill caBundle, too")
        service = _ServiceReference(self.place.namespace, self.place.service)
        ours = [
            Calling(path, found.metadata.resource_version, at, each.name, _bundle(each))
            for at, each in enumerate(found.webhooks or ())
            if each.client_config.service == service
        ]
        if not ours:
            raise _Unusable(f"{path}: no webhook calls Service {service.namespace}/{service.name}")
        return ours

    # ---- what is written

    async def create(self, held: Held) -> None:
        """Make the Secret; Conflict where there is one by now."""
        labels = {OWNER_LABEL: OWNER}
        notes = {name: note for name, note in notes_of(held).items() if note is not None}
        metadata = {"name": self.place.secret, "labels": labels, "annotations": notes}
        data = {
            name: base64.b64encode(content).decode() for name, content in files_of(held).items()
        }
        body = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls"}
        path = SECRETS.path(self.place.namespace)
        await self._client.create(path, {**body, "metadata": metadata, "data": data})

    async def write(self, held: Held, version: str) -> None:
        """Change the Secret; Conflict where it is not of this version any more."""
        metadata = {"resourceVersion": version, "annotations": notes_of(held)}
        await self._client.merge_patch(self.path, {"metadata": metadata, "data": data_of(held)})

    async def inject(
        self, calling: Sequence[Calling], trusting: Callable[[Bundle], Bundle]
    ) -> list[str]:
        """Fill caBundle in one configuration where it is not as it should be.

        Takes webhooks of this configuration, and returns the names of those that changed. Invalid
        where the configuration is not of the version that was read any more.
        """
        changed = [each for each in calling if {*each.bundle} != {*trusting(each.bundle)}]
        if changed:
            test = {"op": "test", "path": "/metadata/resourceVersion", "value": changed[0].version}
            steps = [_filled(each, trusting(each.bundle)) for each in changed]
            await self._client.json_patch(changed[0].path, [test, *steps])
        return [each.name for each in changed]

    async def clock(self) -> datetime | None:
        """Return the API server's time; None where it does not tell."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        try:
            found = await self._client.create(REVIEWS.path(), body, as_=_Review)
        except (Forbidden, NotFound):
            return None
        stamp = found.metadata.creation_timestamp
        return None if stamp is None else datetime.fromisoformat(stamp)


class _Unusable(Exception):  # noqa: N818 - an answer, not a fault of ours
    """A configuration that is not to be filled; the text says why."""


def _expect_about_the_object(error: NotFound) -> None:
    # A NotFound without this reason is about the path, not the object.
    if error.reason != "NotFound":
        raise error


def _bundle(webhook: _Webhook) -> Bundle:
    try:
        return certificates_in(base64.b64decode(webhook.client_config.ca_bundle or ""))
    except (CertificateError, binascii.Error):
        return ()


def _filled(calling: Calling, bundle: Bundle) -> Mapping[str, Any]:
    path = f"/webhooks/{calling.index}/clientConfig/caBundle"
    return {"op": "add", "path": path, "value": base64.b64encode(b"".join(bundle)).decode()}

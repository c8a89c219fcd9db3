"""Puts certificates into a Secret, and says whether what is in it can be used.

The Secret is the truth: the first process creates it and all others use its content, so any number
of them may run at once and again. The authority's key is never stored.
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
    is_named,
    issue_client,
    issue_leaf,
    new_authority,
    serves,
    signed_by,
)
from certs.files import (
    CA_FILE,
    CERTIFICATE_FILE,
    CLIENT_CERTIFICATE_FILE,
    CLIENT_KEY_FILE,
    KEY_FILE,
)
from kube.api.client import Client, Resource
from kube.api.errors import Conflict, NotFound

SECRETS = Resource(group="", version="v1", plural="secrets", namespaced=True)


class BootstrapError(Exception):
    """The cluster holds something that cannot be used; the text says what, and what to do."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A Secret, and what its certificates are for."""

    namespace: str
    secret: str
    names: ServerNames
    """By which the server is called."""
    client: str = ""
    """The name of a caller that gets a certificate too; empty where callers show none."""

    @property
    def title(self) -> str:
        """How people call the Secret."""
        return f"{self.namespace}/{self.secret}"


@dataclass(frozen=True, slots=True)
class Kept:
    """What the Secret holds now: the authority's certificate, and whether it was made just now."""

    authority: bytes
    created: bool

    def said(self, wanted: Wanted) -> str:
        """What was done, in words."""
        return f"Secret {wanted.title} {'created' if self.created else 'kept'}"


class _Secret(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


async def ensure_secret(client: Client, wanted: Wanted, now: datetime) -> Kept:
    """Make the Secret unless there is one; raises BootstrapError where that one is of no use."""
    found = await _read(client, wanted)
    if found is not None:
        return Kept(_checked(found, wanted, now), created=False)
    content = _issued(wanted, now)
    try:
        await client.create(SECRETS.path(wanted.namespace), _secret(wanted, content))
    except Conflict:
        # Another one was quicker: its certificates count.
        return await ensure_secret(client, wanted, now)
    return Kept(content[CA_FILE], created=True)


async def _read(client: Client, wanted: Wanted) -> _Secret | None:
    try:
        return await client.get(SECRETS.path(wanted.namespace, wanted.secret), as_=_Secret)
    except NotFound as error:
        # A NotFound without this reason is about the path, not the Secret.
        if error.reason != "NotFound":
            raise
        return None


def _issued(wanted: Wanted, now: datetime) -> dict[str, bytes]:
    """Issue all that is wanted from a new authority, by the name of the file."""
    authority = new_authority(f"{wanted.secret}-ca", now)
    leaf = issue_leaf(authority, wanted.names, now)
    files = {CA_FILE: authority.certificate, CERTIFICATE_FILE: leaf.certificate, KEY_FILE: leaf.key}
    if wanted.client:
        pair = issue_client(authority, wanted.client, now)
        files |= {CLIENT_CERTIFICATE_FILE: pair.certificate, CLIENT_KEY_FILE: pair.key}
    return files


def _secret(wanted: Wanted, content: Mapping[str, bytes]) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": wanted.secret,
            "namespace": wanted.namespace,
            "labels": {"app.kubernetes.io/part-of": "muster"},
        },
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(each).decode() for name, each in content.items()},
    }


# ---- what is there


def _checked(secret: _Secret, wanted: Wanted, now: datetime) -> bytes:
    """Return the authority's certificate if all in the Secret fits; else say what does not."""
    try:
        fault = _server_fault(secret, wanted, now)
        if not fault and wanted.client:
            fault = _client_fault(secret, wanted, now)
    except CertificateError as error:
        fault = str(error)
    if fault:
        raise BootstrapError(
            f"Secret {wanted.title}: {fault}; delete the Secret to have it made anew"
        )
    return _content(secret, CA_FILE)


def _server_fault(secret: _Secret, wanted: Wanted, now: datetime) -> str:
    fault = _pair_fault(secret, CERTIFICATE_FILE, KEY_FILE, now)
    if not fault and not serves(_content(secret, CERTIFICATE_FILE), wanted.names):
        names = (*wanted.names.dns, *map(str, wanted.names.addresses))
        return f"{CERTIFICATE_FILE} is not for {', '.join(names)}"
    return fault


def _client_fault(secret: _Secret, wanted: Wanted, now: datetime) -> str:
    fault = _pair_fault(secret, CLIENT_CERTIFICATE_FILE, CLIENT_KEY_FILE, now)
    if not fault and not is_named(_content(secret, CLIENT_CERTIFICATE_FILE), wanted.client):
        return f"{CLIENT_CERTIFICATE_FILE} is not that of {wanted.client}"
    return fault


def _pair_fault(secret: _Secret, certificate: str, key: str, now: datetime) -> str:
    authority = _content(secret, CA_FILE)
    pair = Pair(_content(secret, certificate), _content(secret, key))
    if not belong_together(pair):
        return f"{key} is not the key of {certificate}"
    if not signed_by(pair.certificate, authority):
        return f"{CA_FILE} did not sign {certificate}"
    return f"{certificate} has expired" if now >= expires_at(pair.certificate) else ""


def _content(secret: _Secret, name: str) -> bytes:
    encoded = (secret.data or {}).get(name)
    if not encoded:
        raise CertificateError(f"{name} is missing")
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise CertificateError(f"{name} is not base64") from error

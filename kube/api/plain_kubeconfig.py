"""Reads a kubeconfig that says all itself: an address, an authority, and a token or certificate.

The `kubernetes` package reads every kubeconfig and takes most of a second to import, which a
command of a second notices. So the common case is read here. Whatever is not exactly that (a plugin
to run, several files, a proxy, a fault) is None, and left to the package.
"""

import atexit
import base64
import tempfile
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kube.api.kubeconfig_entries import IMPERSONATION, Headers, acts_as

_CLUSTER = {
    "server",
    "certificate-authority",
    "certificate-authority-data",
    "insecure-skip-tls-verify",
    "tls-server-name",
}
_CERTIFICATE, _KEY = "client-certificate", "client-key"
_USER = {
    "token",
    "tokenFile",
    *IMPERSONATION,
    *(f"{name}{end}" for name in (_CERTIFICATE, _KEY) for end in ("", "-data")),
}


@dataclass(frozen=True, slots=True)
class Plain:
    """What one context of a kubeconfig says; paths are those of files that exist."""

    server: str
    namespace: str
    token: str | None = None
    authority: str | None = None
    certificate: str | None = None
    key: str | None = None
    verify: bool = True
    server_name: str | None = None
    acts_as: Headers = ()


class _NotPlain(Exception):  # noqa: N818 - it is no fault
    """The kubeconfig is for the package to read."""


def read_plain(path: str, context: str | None) -> Plain | None:
    """Return a context of a kubeconfig, the current one where none is named; None if not plain."""
    try:
        return _read(Path(path).expanduser(), context)
    except (_NotPlain, OSError, ValueError, TypeError, yaml.YAMLError, RecursionError):
        # ValueError, TypeError: what YAML takes for a date or a key that it is not; NUL in a path.
        return None


def _read(path: Path, context: str | None) -> Plain:
    _require({*urllib.request.getproxies()} <= {"no"})
    whole = _mapping(_load(path.read_text(encoding="utf-8")))
    chosen = _named(whole, "contexts", context or whole.get("current-context"), "context")
    cluster = _named(whole, "clusters", chosen.get("cluster"), "cluster")
    user = _named(whole, "users", chosen["user"], "user") if chosen.get("user") else {}
    _require(cluster.keys() <= _CLUSTER and user.keys() <= _USER)
    server, is_tls = _text(cluster.get("server")), str(cluster["server"]).startswith("https://")
    base, tls = path.absolute().parent, (cluster, user) if is_tls else ({}, {})
    return Plain(
        server=server,
        namespace=_text(chosen.get("namespace") or "default"),
        token=_token(user, base),
        authority=_file(tls[0], "certificate-authority", base),
        certificate=_file(tls[1], _CERTIFICATE, base),
        key=_file(tls[1], _KEY, base),
        verify=not _flag(cluster.get("insecure-skip-tls-verify", False)),
        server_name=_text(cluster["tls-server-name"]) if "tls-server-name" in cluster else None,
        acts_as=acts_as(user),
    )


def _load(text: str) -> Any:
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506


def _require(holds: bool) -> None:  # noqa: FBT001 - what must hold is the whole of the call
    if not holds:
        raise _NotPlain


def _mapping(found: Any) -> Mapping[str, Any]:
    _require(isinstance(found, dict))
    mapping: Mapping[str, Any] = found
    return mapping


def _text(found: Any) -> str:
    _require(isinstance(found, str) and bool(found))
    return str(found)


def _flag(found: Any) -> bool:
    _require(isinstance(found, bool))
    return bool(found)


def _named(whole: Mapping[str, Any], part: str, name: Any, key: str) -> Mapping[str, Any]:
    """Return the one entry of a name in a list of the kubeconfig."""
    entries = whole.get(part)
    _require(isinstance(entries, list))
    found = [each for each in map(_mapping, entries or ()) if each.get("name") == name]
    _require(isinstance(name, str) and len(found) == 1)
    return _mapping(found[0].get(key) or {})


def _token(user: Mapping[str, Any], base: Path) -> str | None:
    if "token" in user:
        return _text(user["token"])
    if "tokenFile" in user:
        return (base / _text(user["tokenFile"])).read_text(encoding="utf-8")
    return None


def _file(found: Mapping[str, Any], name: str, base: Path) -> str | None:
    """Return the path of what is named, or is there as base64; None where neither is."""
    data = found.get(f"{name}-data")
    if data is not None:
        return _written(base64.b64decode(_text(data), validate=True))
    if name not in found:
        return None
    path = base / _text(found[name])
    _require(path.is_file())
    return str(path)


@cache
def _written(content: bytes) -> str:
    """Write into a file what is to be read from one; it is removed as the program ends."""
    with tempfile.NamedTemporaryFile(prefix="muster-", delete=False) as file:
        file.write(content)
    atexit.register(Path(file.name).unlink, missing_ok=True)
    return file.name

"""Reads the kubeconfig of a member from its Secret. Pure.

A kubeconfig may not run a program or read a file. Otherwise a user who may write the Secret could
act with the rights of the dispatcher.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import yaml

_NOT_IN_CLUSTER = {
    "insecure-skip-tls-verify": "its certificate has to be checked",
    "certificate-authority": "a file; allowed: certificate-authority-data",
}
_NOT_IN_USER = {
    "exec": "a program",
    "auth-provider": "a program",
    "tokenFile": "a file; allowed: token",
    "client-certificate": "a file; allowed: client-certificate-data",
    "client-key": "a file; allowed: client-key-data",
    "username": "a password; allowed: token, or a client certificate",
    "password": "a password; allowed: token, or a client certificate",
    "as": "another user's name",
    "as-uid": "another user's uid",
    "as-groups": "another user's groups",
    "as-user-extra": "another user's extras",
}


class RefusedKubeconfig(ValueError):  # noqa: N818 - it says what it is
    """The kubeconfig is none, or one that the dispatcher does not use; the text says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a member is, and with which credentials it is asked."""

    server: str
    authority: bytes = b""
    """Certificates in PEM, of which one signed the server's; empty for those of the system."""
    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    server_name: str | None = None
    proxy: str | None = None


def target_of(text: bytes) -> Target:
    """Return what the current context says; RefusedKubeconfig where it cannot be used."""
    whole = _parsed(text)
    context = _entry(whole, "contexts", _text(whole, "current-context"), "context")
    cluster = _entry(whole, "clusters", _text(context, "cluster"), "cluster")
    user = _entry(whole, "users", _text(context, "user"), "user")
    _refuse(cluster, _NOT_IN_CLUSTER, "cluster")
    _refuse(user, _NOT_IN_USER, "user")
    return _checked(
        Target(
            server=_text(cluster, "server"),
            authority=_data(cluster, "certificate-authority-data"),
            token=_text(user, "token", needed=False).strip(),
            certificate=_data(user, "client-certificate-data"),
            key=_data(user, "client-key-data"),
            server_name=_text(cluster, "tls-server-name", needed=False) or None,
            proxy=_text(cluster, "proxy-url", needed=False) or None,
        )
    )


def _parsed(text: bytes) -> Mapping[str, Any]:
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RefusedKubeconfig(f"no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise RefusedKubeconfig("no kubeconfig")
    return found


def _entry(whole: Mapping[str, Any], part: str, name: str, key: str) -> Mapping[str, Any]:
    entries = whole.get(part) or ()
    listed = entries if isinstance(entries, list) else ()
    named = (each for each in listed if isinstance(each, dict) and each.get("name") == name)
    found = next(named, {}).get(key)
    if not isinstance(found, dict):
        raise RefusedKubeconfig(f"{part}: there is no {name!r}")
    return found


def _refuse(found: Mapping[str, Any], refused: Mapping[str, str], where: str) -> None:
    for key, why in refused.items():
        if found.get(key):
            raise RefusedKubeconfig(f"{where}.{key} is refused: {why}")


def _text(found: Mapping[str, Any], key: str, *, needed: bool = True) -> str:
    text = found.get(key) or ""
    if not isinstance(text, str) or (needed and not text):
        raise RefusedKubeconfig(f"{key} is missing, or no text")
    return text


def _data(found: Mapping[str, Any], key: str) -> bytes:
    try:
        return base64.b64decode(_text(found, key, needed=False), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RefusedKubeconfig(f"{key} is no base64") from error


def _checked(target: Target) -> Target:
    if "@" in target.server:
        raise RefusedKubeconfig("server has a user or a password in it; allowed: token")
    _check_address("server", target.server, ("https",))
    if target.proxy:
        _check_address("proxy-url", target.proxy, ("http", "https"))
    if not target.token and not target.certificate:
        raise RefusedKubeconfig("the user has neither a token nor a client certificate")
    if bool(target.certificate) != bool(target.key):
        raise RefusedKubeconfig("a client certificate needs its key, and a key its certificate")
    return target


def _check_address(key: str, url: str, schemes: tuple[str, ...]) -> None:
    """Refuse what is no URL, or has another scheme; a URL may hold a password, so none is told."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        raise RefusedKubeconfig(f"{key} is no address: {error}") from error
    if scheme not in schemes:
        allowed = ", ".join(f"{each}://" for each in schemes)
        raise RefusedKubeconfig(f"{key} has scheme {scheme!r}; allowed: {allowed}")

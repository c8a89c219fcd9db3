"""Reads keys and passwords from two mounted Secrets, and makes them where there are none."""

from __future__ import annotations

import contextlib
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kube.api.client import Client
from kube.api.errors import Conflict
from kube.api.resources import SECRETS

KEY, PASSWORD, NEXT = "key", "password", ".next"
SECRET_OF: Final = {KEY: "muster-redis-keys", PASSWORD: "muster-redis-passwords"}
"""The servers get the second one alone."""
FORM: Final = re.compile(r"[0-9a-f]{64,128}")
ALLOWED: Final = "64 to 128 hexadecimal digits, in lower case"


class NoKeys(Exception):  # noqa: N818 - it may be remedied any moment
    """The files are not there, or hold what is no key; the text says which."""


@dataclass(frozen=True, slots=True)
class Keys:
    """What is in use, the newest first. Two of a kind are in use while they are rotated."""

    users: tuple[bytes, ...]
    """Keys of which the passwords of users are derived."""
    administrators: tuple[str, ...]
    """Passwords of Muster's own users on the servers."""

    @property
    def rotating(self) -> bool:
        """Whether Secrets may be of an older key."""
        return len(self.users) > 1


def read_keys(folder: Path) -> Keys:
    """Read the files of the mounted Secret; raises NoKeys."""
    users, administrators = _read(folder, KEY), _read(folder, PASSWORD)
    return Keys(tuple(each.encode() for each in users), administrators)


def new_key() -> str:
    """Draw a key or a password."""
    return secrets.token_hex(32)


async def make_keys(client: Client, namespace: str) -> None:
    """Make the Secrets; one that is there stays as it is."""
    for file, name in SECRET_OF.items():
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "Opaque",
            "metadata": {"name": name, "namespace": namespace},
            "stringData": {file: new_key()},
        }
        with contextlib.suppress(Conflict):
            await client.create(SECRETS.path(namespace), body)


def _read(folder: Path, name: str) -> tuple[str, ...]:
    try:
        first = (folder / name).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise NoKeys(f"{folder / name}: {error}; it comes with Secret {SECRET_OF[name]}") from error
    following = folder / f"{name}{NEXT}"
    newest = [following.read_text(encoding="utf-8").strip()] if following.exists() else []
    for each in (*newest, first):
        if not FORM.fullmatch(each):
            raise NoKeys(f"{folder / name}: not a key; allowed: {ALLOWED}")
    return (*newest, first)

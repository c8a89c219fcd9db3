"""Derives name, password and rights of Redis users from RayCluster uids and Muster's keys. Pure.

Each Redis server keeps its own users and replicates none, so the wanted users are compared with
those of each server. Nothing that a tenant wrote goes into a name or a pattern.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

COMMANDS: Final = (
    *("hset", "hsetnx", "hget", "hmget", "hdel", "hexists", "hscan", "incrby"),
    *("del", "unlink", "scan", "ping", "info"),
)
"""What Ray 2.41 and newer sends; without any one of them the head or its clean-up ends."""

WITHOUT_GROWTH: Final = tuple(each for each in COMMANDS if each not in ("hset", "hsetnx", "incrby"))
"""What is left to a RayCluster over the operator's limit: to read, and to make room."""

_USER: Final = re.compile(r"ray-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_KEY: Final = re.compile(r"RAY([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})@")
_SILENT: Final = frozenset(("reset", "sanitize-payload", "resetchannels"))
"""What stands in one of the two alone: rules as they are set, and as servers say them."""


def user_of(uid: str) -> str:
    """Name the user of a RayCluster."""
    return f"ray-{uid}"


def uid_of_user(user: str) -> str | None:
    """Return the RayCluster's uid of a user; None for users that are none of a RayCluster."""
    match = _USER.fullmatch(user)
    return match and match[1]


def uid_of_key(key: str) -> str | None:
    """Return the uid of the RayCluster whose head wrote a key; None for other keys."""
    match = _KEY.match(key)
    return match and match[1]


def is_uid(text: str) -> bool:
    """Say whether a uid has the form that the API server gives, which goes into patterns."""
    return _USER.fullmatch(user_of(text)) is not None


def keys_of(uid: str) -> str:
    """Return the pattern of the keys of a RayCluster: KubeRay names its storage by its uid."""
    return f"RAY{uid}@*"


def password_of(key: bytes, uid: str) -> str:
    """Derive the password of a RayCluster's user, so that none is ever read back."""
    return hmac.new(key, b"user " + uid.encode(), hashlib.sha256).hexdigest()


def digest_of(password: str) -> str:
    """Return a password as rules have it: SHA-256, in hexadecimal."""
    return hashlib.sha256(password.encode()).hexdigest()


def digests_of(keys: Iterable[bytes], uid: str) -> frozenset[str]:
    """Return the passwords by which a user is known: one for each key in use."""
    return frozenset(digest_of(password_of(key, uid)) for key in keys)


def rule_of(
    uid: str, digests: Collection[str], commands: Collection[str] = COMMANDS
) -> tuple[str, ...]:
    """Return the rule of a user, as arguments of ACL SETUSER after the name.

    `DUMMY` is a key that Ray deletes when it connects.
    """
    assert is_uid(uid), uid
    passwords = (f"#{each}" for each in sorted(digests))
    allowed = (f"+{each}" for each in commands)
    keys = (f"~{keys_of(uid)}", "~DUMMY")
    return ("reset", "on", *passwords, *keys, "resetchannels", "-@all", *allowed)


CLOSED: Final = ("reset", "off")
"""The rule of a user that may do nothing any more, whatever connections it has."""


def lacking_names(users: Iterable[str], wanted: Collection[str]) -> tuple[str, ...]:
    """Return the uids that a server, which has these users, lacks a user of."""
    there = {uid_of_user(user) for user in users}
    return tuple(sorted(uid for uid in wanted if uid not in there))


def lacking_rules(lines: Iterable[str], wanted: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return the uids whose users a server (ACL LIST) lacks, or has with other rules."""
    there = dict(_rule(line) for line in lines)
    return tuple(
        sorted(
            uid
            for uid, rule in wanted.items()
            if there.get(user_of(uid)) != frozenset(rule) - _SILENT
        )
    )


def _rule(line: str) -> tuple[str, frozenset[str]]:
    _, _, rest = line.partition("user ")
    user, _, rule = rest.partition(" ")
    return user, frozenset(rule.split()) - _SILENT

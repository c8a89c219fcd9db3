"""Users of Redis: name, password and rights of each, from its RayCluster's uid alone. Pure.

Redis keeps users on each server by itself and does not replicate them, so what is wanted is
compared with what each server has. Nothing that a tenant wrote goes into a name or a pattern.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

COMMANDS: Final = (
    *("hset", "hsetnx", "hget", "hmget", "hdel", "hexists", "hscan", "incrby"),
    *("del", "unlink", "scan", "ping", "info"),
)
"""What Ray 2.41 and newer sends; without any one of them the head or its clean-up ends."""

_USER: Final = re.compile(r"ray-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_KEY: Final = re.compile(r"RAY([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})@")
_SILENT: Final = frozenset(("sanitize-payload", "resetchannels"))
"""What servers add to a user that was set here, by their version."""


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


def rule_of(uid: str, digests: Collection[str]) -> tuple[str, ...]:
    """Return the rule of a user, as arguments of ACL SETUSER after the name.

    `DUMMY` is a key that Ray deletes when it connects.
    """
    assert is_uid(uid), uid
    passwords = (f"#{each}" for each in sorted(digests))
    allowed = (f"+{each}" for each in COMMANDS)
    keys = (f"~{keys_of(uid)}", "~DUMMY")
    return ("reset", "on", *passwords, *keys, "resetchannels", "-@all", *allowed)


CLOSED: Final = ("reset", "off")
"""The rule of a user that may do nothing any more, whatever connections it has."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What one server needs, by uid."""

    to_set: tuple[str, ...]
    left_over: tuple[str, ...]
    """Users without a RayCluster."""


def by_names(users: Iterable[str], wanted: Collection[str]) -> Changes:
    """Compare a server's names of users with the uids that should have one."""
    there = {uid for user in users if (uid := uid_of_user(user))}
    return _changes(there, there, wanted)


def by_rules(lines: Iterable[str], wanted: Mapping[str, Collection[str]]) -> Changes:
    """Compare a server's rules (ACL LIST) with uids and the digests of their passwords."""
    rules = dict(_rule(line) for line in lines)
    there = {uid: rule for user, rule in rules.items() if (uid := uid_of_user(user))}
    right = {uid for uid, digests in wanted.items() if there.get(uid) == _said(uid, digests)}
    return _changes(right, there, wanted)


def _changes(right: Iterable[str], there: Iterable[str], wanted: Iterable[str]) -> Changes:
    to_set, left_over = {*wanted} - {*right}, {*there} - {*wanted}
    return Changes(tuple(sorted(to_set)), tuple(sorted(left_over)))


def _said(uid: str, digests: Collection[str]) -> frozenset[str]:
    """Return the rule of a user as a server says it, in whatever order."""
    return frozenset(rule_of(uid, digests)) - _SILENT - {"reset"}


def _rule(line: str) -> tuple[str, frozenset[str]]:
    _, _, rest = line.partition("user ")
    user, _, rule = rest.partition(" ")
    return user, frozenset(rule.split()) - _SILENT

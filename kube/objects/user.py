"""Decodes a user of the API server, and the annotation that names an AppWrapper's creator.

The note is JSON in an annotation. It holds all that the user's rights may depend on: groups, and
`extra`, by which some authorizers narrow the rights of a token.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kube.objects.base import OrNull, Part

LONGEST: Final = 32 * 1024
"""Bytes of the note. All annotations of an object may have 256 KiB together."""


class User(Part, frozen=True, omit_defaults=True):
    """A user, as the API server authenticated it."""

    username: str = ""
    uid: str = ""
    groups: OrNull[tuple[str, ...]] = ()
    extra: OrNull[Mapping[str, tuple[str, ...]]] = {}


SERVICE_ACCOUNT: Final = "system:serviceaccount:"
"""Before namespace:name in the name of the user that a service account is."""

_USER: Final = msgspec.json.Decoder(User)


def write_user(user: User) -> str | None:
    """Return the note about a user; None where it would be too long, for a part is not enough."""
    note = msgspec.json.encode(user)
    return note.decode() if len(note) <= LONGEST else None


def read_user(note: str) -> User | None:
    """Read a note; None where it does not name a user."""
    try:
        user = _USER.decode(note)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return user if user.username else None


def service_account(username: str) -> User:
    """Return the user that a service account is, with the groups that the API server gives it."""
    namespace = username.removeprefix(SERVICE_ACCOUNT).partition(":")[0]
    accounts = "system:serviceaccounts"
    groups = (accounts, f"{accounts}:{namespace}", "system:authenticated")
    return User(username, groups=groups)

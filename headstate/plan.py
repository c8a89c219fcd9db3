"""Plans the changes of Redis servers and Secrets from their observed state. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from headstate.options import PASSWORD, SECRET_PREFIX, USERNAME, secret_of
from headstate.users import is_uid, uid_of_key, uid_of_user, user_of
from kube.objects import names
from kube.objects.base import ObjectMeta, Slim

READY: Final = "ready"
"""What KubeRay says of a RayCluster whose pods are all there: its head has its Secret."""
MOST_REPORTED: Final = 500
"""Clusters in the report, those that use most; it must stay within an object's size."""


class _Spec(Slim, frozen=True):
    gcs_fault_tolerance_options: dict[str, Any] | None = None


class _Status(Slim, frozen=True):
    state: str = ""


class HeadCluster(Slim, frozen=True):
    """What is read of a RayCluster."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


@dataclass(frozen=True, slots=True)
class Head:
    """A RayCluster. `secret` is where its user goes; None where it has none of ours."""

    metadata: ObjectMeta
    secret: str | None
    ready: bool

    @property
    def uid(self) -> str:
        """Its uid, from which all names follow."""
        return self.metadata.uid

    @property
    def ends(self) -> bool:
        """Whether it is being deleted."""
        return self.metadata.deletion_timestamp is not None


def head_of(found: HeadCluster, address: str) -> Head:
    """Read a RayCluster; one whose uid could not go into a pattern has no user."""
    options = found.spec.gcs_fault_tolerance_options
    labelled = names.HEAD_FAULT_TOLERANCE in found.metadata.labels and is_uid(found.metadata.uid)
    secret = secret_of(options, address) if labelled else None
    meta = msgspec.structs.replace(found.metadata, labels={}, annotations={})
    return Head(meta, secret, found.status.state == READY)


# ---- which servers count


def primary_of(answers: Iterable[str | None], sentinels: int) -> str | None:
    """Return the server that more than half of all Sentinels call the primary."""
    counted = Counter(each for each in answers if each is not None)
    for server, votes in counted.most_common(1):
        return server if votes * 2 > sentinels else None
    return None


def suffices(answering: Collection[str], servers: int, primary: str | None) -> bool:
    """Say whether a user that is on all servers that answer is where a head may need it.

    The primary may be lost at once, and any that answers may follow it. One that does not answer
    gets the user when it does.
    """
    return primary in answering and len(answering) * 2 > servers


# ---- what is left over


def left_over(users: Iterable[str], keys: Iterable[str], alive: Collection[str]) -> list[str]:
    """Return the uids that have a user or keys and no RayCluster."""
    found = {*map(uid_of_user, users), *map(uid_of_key, keys)}
    return sorted(uid for uid in found if uid is not None and uid not in alive)


# ---- Secrets


def secret_for(head: Head, password: str) -> dict[str, Any]:
    """Return the Secret with a head's user; it goes with its RayCluster."""
    assert head.secret is not None
    assert head.secret.startswith(SECRET_PREFIX)
    owner = {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCluster",
        "name": head.metadata.name,
        "uid": head.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": head.secret,
            "namespace": head.metadata.namespace,
            "ownerReferences": [owner],
        },
        "type": "Opaque",
        "stringData": {USERNAME: user_of(head.uid), PASSWORD: password},
    }


@dataclass(frozen=True, slots=True)
class Written:
    """What this leader knows of a Secret: which, of which key, and whether it made it."""

    secret: str
    key: bytes
    made: bool


def is_missing(head: Head, key: bytes, before: Written | None) -> bool:
    """Say whether a Secret is to be written: where none is known, and while a head is not up.

    Nothing is read, so one that was deleted by hand is not seen; but its head then waits for it.
    """
    known = before is not None and (before.secret, before.key) == (head.secret, key)
    return not head.ends and not (known and head.ready)


def is_replaced(head: Head, key: bytes, before: Written | None, *, rotating: bool) -> bool:
    """Say whether a Secret that is there already, unread, is written anew.

    It may be of an earlier key, or not ours at all. One that this leader made of this key is
    right. So is one of a head that is ready, while only one key is in use.
    """
    if before is not None and before.key != key:
        return True
    return not (before is not None and before.made) and (rotating or not head.ready)


# ---- the report


@dataclass(frozen=True, slots=True)
class ServerState:
    """What one server says of itself."""

    role: str = ""
    memory: int = 0
    limit: int = 0
    offset: int = 0
    """How much it wrote, or has of what its primary wrote, in bytes of the stream between them."""


def lags(servers: Mapping[str, ServerState | None], primary: str | None) -> dict[str, int]:
    """Return how many bytes each replica is behind the primary."""
    first = servers.get(primary or "")
    if first is None:
        return {}
    return {
        name: max(0, first.offset - each.offset)
        for name, each in servers.items()
        if each is not None and name != primary
    }


def over_limit(used: Mapping[str, int], most: int) -> frozenset[str]:
    """Return the uids whose keys take more than is allowed; 0 allows all."""
    return frozenset(uid for uid, size in used.items() if most and size > most)


def report_of(
    servers: Mapping[str, ServerState | None],
    primary: str | None,
    heads: Mapping[str, Head],
    used: Mapping[str, int],
    written: tuple[int, int],
) -> dict[str, Any]:
    """Return what `muster redis status` shows; `written` are Secrets of the newest key, and all."""
    behind = lags(servers, primary)
    most = sorted(used, key=lambda uid: (-used[uid], uid))[:MOST_REPORTED]
    return {
        "primary": primary,
        "servers": [
            {"name": name} | ({"answers": False} if each is None else _said(each, behind.get(name)))
            for name, each in sorted(servers.items())
        ],
        "clusters": [
            {"namespace": meta.namespace, "name": meta.name, "bytes": used[uid]}
            for uid in most
            if uid in heads and (meta := heads[uid].metadata)
        ],
        "secrets": {"newestKey": written[0], "all": written[1]},
    }


def _said(state: ServerState, lag: int | None) -> dict[str, Any]:
    memory = {"memory": state.memory, "maxMemory": state.limit}
    return {"answers": True, "role": state.role, **memory} | ({} if lag is None else {"lag": lag})

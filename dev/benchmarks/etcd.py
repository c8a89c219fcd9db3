"""Counts what the API server keeps in etcd: objects, and their bytes, without earlier revisions."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from testbed.cluster import Cluster
from testbed.errors import TestbedError

_FIRST, _END = b"/registry/", b"/registry0"
_PAGE = 250  # keys; pods take some 5 KB each
_PAGES = 1_000


@dataclass(frozen=True)
class Stored:
    """Objects of one namespace, and what they take: keys and values as they are stored."""

    objects: int
    size: int


def stored_in(cluster: Cluster, namespace: str) -> Stored:
    """Read all objects of a namespace off etcd."""
    part = f"/{namespace}/".encode()
    found = [len(key) + len(value) for key, value in _pairs(cluster) if part in key]
    return Stored(len(found), sum(found))


def count_under(cluster: Cluster, prefix: str) -> int:
    """Count the objects whose keys begin so, without reading one."""
    begin = prefix.encode()
    end = begin[:-1] + bytes([begin[-1] + 1])
    with closing(_connection(cluster)) as connection:
        return int(_asked(connection, begin, end, count_only=True).get("count", 0))


def _pairs(cluster: Cluster) -> Iterator[tuple[bytes, bytes]]:
    begin = _FIRST
    with closing(_connection(cluster)) as connection:
        for _ in range(_PAGES):
            page = _asked(connection, begin, _END, limit=_PAGE).get("kvs", ())
            pairs = [(base64.b64decode(p["key"]), base64.b64decode(p["value"])) for p in page]
            yield from pairs
            if len(pairs) < _PAGE:
                return
            begin = pairs[-1][0] + b"\0"
    raise TestbedError(f"etcd has more than {_PAGE * _PAGES} objects")


def _connection(cluster: Cluster) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", cluster.site.ports.etcd, timeout=30)


def _asked(
    connection: http.client.HTTPConnection, begin: bytes, end: bytes, **more: object
) -> dict[str, Any]:
    where = {"key": base64.b64encode(begin).decode(), "range_end": base64.b64encode(end).decode()}
    connection.request("POST", "/v3/kv/range", json.dumps({**where, **more}))
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != http.HTTPStatus.OK:
        raise TestbedError(f"etcd: {answer.status}: {body[:200]!r}")
    found: dict[str, Any] = json.loads(body)
    return found

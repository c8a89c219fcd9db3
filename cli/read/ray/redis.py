"""Reads the report of the built-in Redis, and the Secrets whose keys are rotated."""

from __future__ import annotations

import msgspec

from cli.endings import Absent, CannotRead
from cli.read.reader import Reader
from cli.report.redis import RedisReport, read_report
from kube.api.resources import CONFIG_MAPS, SECRETS
from kube.objects.base import Labels, ObjectMeta, OrNull, Part

REPORT, REPORT_KEY = "muster-redis-report", "report.json"
ABSENT = "allowed: a cluster with the component redis, whose muster-redis has run"


class Data(Part, frozen=True):
    """A ConfigMap or a Secret."""

    metadata: ObjectMeta = ObjectMeta()
    data: OrNull[Labels] = msgspec.field(default_factory=dict)


async def read_redis(reader: Reader, home: str) -> RedisReport:
    """Read the report; raises Absent, and CannotRead where it cannot be read."""
    found = await reader.get(CONFIG_MAPS, Data, REPORT, home)
    if found is None:
        raise Absent(f"there is no ConfigMap {home}/{REPORT}; {ABSENT}")
    try:
        return read_report(found.data.get(REPORT_KEY, ""))
    except msgspec.DecodeError as error:
        raise CannotRead(f"ConfigMap {home}/{REPORT}, {REPORT_KEY}: {error}") from error


async def read_keys(reader: Reader, home: str, name: str) -> Data:
    """Read a Secret with keys; raises Absent."""
    found = await reader.get(SECRETS, Data, name, home)
    if found is None:
        raise Absent(f"there is no Secret {home}/{name}; {ABSENT}")
    return found

"""Decodes the report on the built-in Redis, and names the next step of a rotation of its keys."""

from __future__ import annotations

import msgspec


class ServerReport(msgspec.Struct, frozen=True, rename="camel"):
    """One server."""

    name: str = ""
    answers: bool = False
    role: str = ""
    memory: int = 0
    max_memory: int = 0
    lag: int | None = None


class ClusterReport(msgspec.Struct, frozen=True):
    """What the keys of a Ray cluster take."""

    namespace: str = ""
    name: str = ""
    bytes: int = 0


class SecretsReport(msgspec.Struct, frozen=True, rename="camel"):
    """How many Secrets are of the newest key, of all."""

    newest_key: int = 0
    all: int = 0


class RedisReport(msgspec.Struct, frozen=True):
    """All that is reported; `keys` are those in use, two while they are rotated."""

    at: str = ""
    keys: int = 0
    primary: str | None = None
    servers: tuple[ServerReport, ...] = ()
    clusters: tuple[ClusterReport, ...] = ()
    secrets: SecretsReport = SecretsReport()


def read_report(text: str) -> RedisReport:
    """Read a report; raises msgspec.DecodeError."""
    return msgspec.json.decode(text, type=RedisReport)


def not_yet(found: RedisReport) -> str:
    """Say why the first of two keys must stay; empty where nothing needs it any more."""
    silent = [each.name for each in found.servers if not each.answers]
    if found.keys < 2:
        return f"muster-redis does not know the second key yet, as of {found.at}: within 2 minutes"
    if silent:
        return f"{', '.join(silent)} does not answer, and may not know the second password"
    if found.secrets.newest_key < found.secrets.all:
        return f"{found.secrets.newest_key} of {found.secrets.all} Secrets have the new password"
    return ""

"""RayClusters, and an API server that keeps what the program writes, for its tests."""

from __future__ import annotations

from typing import Any

from headstate.options import SECRET_PREFIX
from headstate.plan import Head
from headstate.shell.cluster import Outcome
from kube.objects.base import ObjectMeta


def uid_of(number: int) -> str:
    """Return a uid for a number."""
    return f"{number:08x}-0000-4000-8000-000000000000"


def head(number: int, *, ready: bool = False, ends: bool = False, secret: str | None = "") -> Head:
    """Return a RayCluster, by its number."""
    deleted = "2026-11-27T06:00:00Z" if ends else None
    meta = ObjectMeta(f"c{number}", "team", uid_of(number), deletion_timestamp=deleted)
    named = f"{SECRET_PREFIX}{number}" if not secret and secret is not None else secret
    return Head(meta, named, ready)


class FakeCluster:
    """Takes what is written; `taken` are Secrets that are there already, by name."""

    def __init__(self) -> None:
        self.heads: dict[str, Head] = {}
        self.unseen: dict[str, Head] = {}
        """RayClusters that the watch has not told of yet."""
        self.secrets: dict[str, str] = {}
        self.attempts: list[str] = []
        self.refuses = False
        self.told: list[tuple[str, str]] = []
        self.messages: list[str] = []
        self.pointed: list[tuple[str, int]] = []
        self.reports: list[dict[str, Any]] = []
        self.lists = 0

    def add(self, *heads: Head) -> None:
        """Have these RayClusters."""
        self.heads.update({each.uid: each for each in heads})

    def seen(self) -> list[Head]:
        """Return what the watch shows."""
        return [*self.heads.values()]

    async def refresh(self) -> None:
        """List anew."""
        self.lists += 1
        self.heads.update(self.unseen)
        self.unseen.clear()

    async def write_secret(self, head: Head, password: str, *, replaced: bool) -> Outcome:
        """Keep the password by the name of its Secret."""
        assert head.secret is not None
        self.attempts.append(head.secret)
        if self.refuses:
            return "failed"
        if head.secret in self.secrets and not replaced:
            return "found"
        self.secrets[head.secret] = password
        return "made"

    async def tell(self, head: Head, reason: str, message: str, *, warning: bool) -> None:
        """Keep an Event."""
        assert warning == (reason != "RedisUserReady")
        self.told.append((head.metadata.name, reason))
        self.messages.append(message)

    async def address_of(self, server: str) -> str | None:
        """Return what stands before the port."""
        return server.rpartition(":")[0]

    async def point_to(self, address: str, port: int) -> bool:
        """Keep where the Service points."""
        self.pointed.append((address, port))
        return True

    async def publish(self, report: dict[str, Any]) -> None:
        """Keep a report."""
        self.reports.append(report)

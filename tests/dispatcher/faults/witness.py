"""Sees every gang that is on two members at one moment, by watches on both.

A gang is on a member while a pod of it is bound there, ended or not, or a GangOffer for it is
Started. Two watches have no common order, so what looks like two is asked for: what the other
member still has, after it was seen on this one, was there at the same time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from functools import partial
from http.client import HTTPException

from testbed.closing import Closing
from testbed.errors import TestbedError
from testbed.following import DELETED, Follower
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json

_AGAIN = 0.2
"""Seconds until a server that did not answer is asked again."""


class Witness(Closing):
    """Watches all members until it is closed."""

    def __init__(self, members: Mapping[str, Plot]) -> None:
        self.findings: list[str] = []
        self._members = members
        self._seen: dict[str, dict[str, str]] = {name: {} for name in members}
        """By member and uid what of which gang is there."""
        self._closed = threading.Event()
        self._followers = [
            Follower(plot.cluster.api, plot.path(kind), partial(self._take, name))
            for name, plot in members.items()
            for kind in ("Pod", "GangOffer")
        ]
        for each in self._followers:
            each.wait_synced()

    def close(self) -> None:
        """End the watches."""
        self._closed.set()
        for each in self._followers:
            each.close()

    def _take(self, member: str, kind: str, item: Json) -> None:
        uid, gang = item["metadata"]["uid"], gang_there(item)
        if kind == DELETED or not gang:
            self._seen[member].pop(uid, None)
            return
        if uid in self._seen[member]:
            return
        self._seen[member][uid] = gang
        for other, there in self._seen.items():
            before = {each for each, found in list(there.items()) if found == gang}
            if other != member and before:
                self._ask(other, member, gang, before)

    def _ask(self, other: str, member: str, gang: str, before: set[str]) -> None:
        """Note what another member has of a gang still, after it was seen on a member."""
        still = before & self._now(other)
        if still:
            said = f"{gang} is on {member}, and on {other} still: {sorted(still)}"
            self.findings.append(said)

    def _now(self, member: str) -> set[str]:
        plot = self._members[member]
        while not self._closed.is_set():
            with contextlib.suppress(OSError, HTTPException, TestbedError):
                found = (*plot.all("Pod"), *plot.all("GangOffer"))
                return {each["metadata"]["uid"] for each in found if gang_there(each)}
            self._closed.wait(_AGAIN)
        return set()


def gang_there(item: Json) -> str:
    """Name the gang that a pod or a GangOffer says to be there; empty where it says none."""
    if "template" in item["spec"] and "manager" in item["spec"]:
        is_there = item.get("status", {}).get("phase") == "Started"
        return str(item["spec"]["template"]["name"]) if is_there else ""
    labels = item["metadata"].get("labels") or {}
    return str(labels.get("ray.io/cluster", "")) if item["spec"].get("nodeName") else ""

"""Starts coordinators for one test, each behind a proxy of its own, and ends all of them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.muster import NAMESPACE, Muster
from testbed.processes import Process
from testbed.waiting import wait_until
from tests.faults.proxied import Hold, Match
from tests.faults.proxy import Proxy

PACE = {"LEASE_DURATION": "2", "RENEW_DEADLINE": "1.6", "RETRY_PERIOD": "0.2"}
"""Seconds; a leader that is gone is replaced within LEASE_DURATION and a retry."""
STEADY = {"LEASE_DURATION": "4", "RENEW_DEADLINE": "3.2", "RETRY_PERIOD": "0.2"}
"""For tests in which a leader must not lose its term because the machine is busy."""


@dataclass(frozen=True)
class Member:
    """One coordinator."""

    identity: str
    process: Process
    proxy: Proxy
    muster: Muster
    number: int

    @property
    def leads(self) -> bool:
        """Whether it leads by its own word, and has seen all that it must see before it acts."""
        return self.process.running and "muster_leader 1.0" in self.metrics()

    def metrics(self) -> str:
        """Its metrics page."""
        return self.muster.metrics(self.number)

    def value(self, metric: str) -> float:
        """The value of one of its metrics, all labels added up."""
        lines = [line for line in self.metrics().splitlines() if line.startswith(metric)]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def wait_leads(self) -> None:
        """Wait until it leads."""
        wait_until(lambda: self.leads, f"{self.identity} to lead")


class Crew:
    """The coordinators of one test; use it as `with Crew(...) as crew`."""

    def __init__(self, muster: Muster, account: Path) -> None:
        self.members: list[Member] = []
        self._muster = muster
        self._account = account
        self._stack = contextlib.ExitStack()

    def start(self, count: int = 1, settings: Mapping[str, str] | None = None) -> list[Member]:
        """Start some more at the same time, and return them when they are ready."""
        members = [self._spawn(self._proxy(), settings or {}) for _ in range(count)]
        self._muster.wait_ready()
        return members

    def _proxy(self) -> Proxy:
        cluster = self._muster.cluster
        return self._stack.enter_context(Proxy(cluster.server, cluster.ca_file))

    def _spawn(self, proxy: Proxy, settings: Mapping[str, str]) -> Member:
        cluster, number = self._muster.cluster, len(self._muster.coordinators)
        path = proxy.kubeconfig(self._account, cluster.directory / f"proxy-{number}.kubeconfig")
        process = self._muster.start_coordinator(path, {**PACE, **settings})
        self._stack.callback(process.kill)
        member = Member(f"coordinator-{number}", process, proxy, self._muster, number)
        self.members.append(member)
        return member

    def start_leader(self, settings: Mapping[str, str] | None = None) -> Member:
        """Start one that will lead, because no other is there."""
        (member,) = self.start(1, settings)
        member.wait_leads()
        return member

    def start_held_leader(
        self, match: Match, settings: Mapping[str, str] | None = None
    ) -> tuple[Member, Hold]:
        """Start one that will lead, and of whose requests that match not the first one gets out."""
        proxy = self._proxy()
        hold = proxy.hold(match)
        member = self._spawn(proxy, settings or {})
        member.wait_leads()
        return member, hold

    def wait_leader(self) -> Member:
        """Wait until one of the members leads, and return it."""
        found = wait_until(lambda: [m for m in self.members if m.leads], "a member to lead")
        return found[0]

    @property
    def holder(self) -> Member | None:
        """The member that holds the Lease by its record, if it is still there."""
        name = self._muster.leader()
        return next((m for m in self.members if m.identity == name and m.process.running), None)

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def account_of(muster: Muster) -> Path:
    """A kubeconfig with the rights of Muster's coordinator."""
    return muster.cluster.service_account_kubeconfig(NAMESPACE, "muster-coordinator")

"""A manager and two members, with a proxy on each way between a program and an API server."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import trustme
import yaml

from kube.objects import names
from testbed import fleet
from testbed.cluster import Cluster
from testbed.muster import NAMESPACE
from testbed.processes import Process
from testbed.waiting import wait_until
from tests.dispatcher.faults.steps import INSIDE, MANAGER, MEMBER, Step
from tests.dispatcher.faults.trap import Catch, Trap
from tests.dispatcher.faults.witness import Witness
from tests.dispatcher.site import LEASES, LONG, QUEUES, Site, queue, started
from tests.faults.proxy import Proxy

_COORDINATOR = "coordinator-0"
_COORDINATOR_LEASE = "muster-coordinator"


@dataclass
class Stand:
    """Clusters that are used by one case after another."""

    site: Site
    to_manager: Proxy
    to_member: Mapping[str, Proxy]
    inside: Mapping[str, Proxy]
    """By member what is between its coordinator and its API server."""
    witness: Witness
    cases: int = 0

    def new_name(self) -> str:
        """A name that no gang had before."""
        self.cases += 1
        return f"gang-{self.cases}"

    @property
    def dispatcher(self) -> Process:
        """The one replica."""
        return self.site.dispatchers[-1]

    def coordinator(self, member: str) -> Process:
        """The one replica of a member."""
        return self.site.members[member].cluster.process(_COORDINATOR)

    def terms(self) -> dict[str, int]:
        """The terms of all leaders: that of the dispatcher has no name."""
        members = self.site.members.items()
        found = {name: _term(plot.cluster, _COORDINATOR_LEASE) for name, plot in members}
        return {"": _term(self.site.manager.cluster, names.DISPATCHER_LEASE), **found}

    def trap(self, kind: type[Catch], step: Step) -> Trap:
        """Wait for the request of a step, wherever it comes."""
        ways = {MANAGER: {"": self.to_manager}, MEMBER: self.to_member, INSIDE: self.inside}
        return Trap(kind, ways[step.way], step.match)

    def runs_on(self, name: str) -> str:
        """The member on which all of a gang runs; empty where none does."""
        return next((each for each in self.site.members if self.site.is_whole_on(each, name)), "")

    def wait_lost(self, member: str) -> None:
        """Wait until the manager says that a member does not answer."""
        seen = partial(self.site.connected, member)
        wait_until(lambda: seen().get("status") == "False", f"{member} to be lost", LONG, seen=seen)

    def renew_term(self) -> None:
        """Have the dispatcher begin anew."""
        before = self.terms()[""]
        self.dispatcher.restart()
        wait_until(lambda: self.terms()[""] > before, "a new term", LONG)

    def rest(self) -> None:
        """Have every program run, no gang left, and every member connected."""
        for name in self.site.members:
            self.site.drain(name, "Active")
        self.site.clear()
        self.site.wait_connected()


def _term(cluster: Cluster, lease: str) -> int:
    return int(cluster.api.get(f"{LEASES}/{lease}")["spec"].get("leaseTransitions", 0))


@contextmanager
def standing(folder: Path) -> Iterator[Stand]:
    """Start all of it."""
    with ExitStack() as stack:
        site = stack.enter_context(started(folder))
        site.manager.cluster.api.create(QUEUES, queue(clusters={}))
        authority = trustme.CA()
        to_manager = stack.enter_context(_proxy(site.manager.cluster))
        to_member, inside = {}, {}
        for name, plot in site.members.items():
            to_member[name] = stack.enter_context(_proxy(plot.cluster, _tls(authority)))
            inside[name] = stack.enter_context(_proxy(plot.cluster))
            site.write_kubeconfig(name, _through(to_member[name], plot.cluster, authority))
            _restart_coordinator(plot.cluster, inside[name])
        own = _account(site.manager.cluster, "muster-dispatcher", to_manager)
        site.start_dispatcher(KUBECONFIG=str(own))
        witness = stack.enter_context(Witness(site.members))
        found = Stand(site, to_manager, to_member, inside, witness)
        site.wait_connected()
        yield found


def _proxy(cluster: Cluster, tls: ssl.SSLContext | None = None) -> Proxy:
    return Proxy(cluster.server, cluster.ca_file, tls)


def _tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def _through(proxy: Proxy, member: Cluster, authority: trustme.CA) -> bytes:
    """Return the dispatcher's kubeconfig for a member, by way of the proxy."""
    found: dict[str, Any] = yaml.safe_load(fleet.kubeconfig_of(member))
    data = base64.b64encode(authority.cert_pem.bytes()).decode()
    found["clusters"][0]["cluster"] = {"server": proxy.url, "certificate-authority-data": data}
    return yaml.safe_dump(found).encode()


def _account(cluster: Cluster, account: str, proxy: Proxy) -> Path:
    """Write the kubeconfig of a program that goes by way of a proxy."""
    own = cluster.service_account_kubeconfig(NAMESPACE, account)
    return proxy.kubeconfig(own, cluster.directory / f"proxied-{account}.kubeconfig")


def _restart_coordinator(cluster: Cluster, proxy: Proxy) -> None:
    own = _account(cluster, "muster-coordinator", proxy)
    before = _term(cluster, _COORDINATOR_LEASE)
    cluster.process(_COORDINATOR).restart({"MUSTER_COORDINATOR_KUBECONFIG": str(own)})
    wait_until(lambda: _term(cluster, _COORDINATOR_LEASE) > before, "it to lead anew", LONG)

"""What may break between two steps: each is a block in which it is broken; healed is its end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from testbed import components
from testbed.cluster import Cluster
from testbed.processes import Process
from testbed.waiting import wait_until
from tests.dispatcher.faults.stand import Stand
from tests.dispatcher.site import LONG
from tests.faults.proxied import Fault
from tests.faults.proxy import Proxy

Breakage = Callable[[Stand, str], contextlib.AbstractContextManager[None]]
"""What breaks at a member, or at the manager."""

_REQUESTS = 10
"""Requests that have to be lost before the way is mended."""


def dispatcher_killed(stand: Stand, _: str) -> contextlib.AbstractContextManager[None]:
    """Kill the dispatcher; it is started again, as its kubelet does."""
    return _killed(stand.dispatcher)


def coordinator_killed(stand: Stand, member: str) -> contextlib.AbstractContextManager[None]:
    """Kill the coordinator of the member."""
    return _killed(stand.coordinator(member))


def member_server_down(stand: Stand, member: str) -> contextlib.AbstractContextManager[None]:
    """Stop the API server of the member, and start it."""
    return _server_down(stand.site.members[member].cluster)


def manager_server_down(stand: Stand, _: str) -> contextlib.AbstractContextManager[None]:
    """Stop the API server of the manager, and start it."""
    return _server_down(stand.site.manager.cluster)


@contextlib.contextmanager
def to_member_cut(stand: Stand, member: str) -> Iterator[None]:
    """Cut the way from the dispatcher to the member, until that is told."""
    proxy = stand.to_member[member]
    with proxy.during(proxy.cut()):
        stand.wait_lost(member)
        yield


@contextlib.contextmanager
def from_member_silent(stand: Stand, member: str) -> Iterator[None]:
    """Cut the way back: nothing comes from the member, and no connection ends."""
    proxy = stand.to_member[member]
    with proxy.during(proxy.silence()):
        stand.wait_lost(member)
        yield


def to_manager_cut(stand: Stand, _: str) -> contextlib.AbstractContextManager[None]:
    """Cut the way from the dispatcher to the manager."""
    return _cut(stand.to_manager)


def inside_cut(stand: Stand, member: str) -> contextlib.AbstractContextManager[None]:
    """Cut the way from the coordinator of the member to its API server."""
    return _cut(stand.inside[member])


@contextlib.contextmanager
def _killed(process: Process) -> Iterator[None]:
    process.kill()
    try:
        yield
    finally:
        process.restart()


@contextlib.contextmanager
def _server_down(cluster: Cluster) -> Iterator[None]:
    with _killed(cluster.process(components.API_SERVER)):
        yield
    cluster.wait_healthy(components.API_SERVER)


@contextlib.contextmanager
def _cut(proxy: Proxy) -> Iterator[None]:
    with proxy.during(proxy.cut()) as cut:
        wait_until(lambda: _is_felt(cut), "the cut to be felt", seconds=LONG)
        yield


def _is_felt(cut: Fault) -> bool:
    return len(cut.met) >= _REQUESTS


KILLS = (dispatcher_killed, coordinator_killed)
ALL: tuple[Breakage, ...] = (
    *KILLS,
    member_server_down,
    manager_server_down,
    to_member_cut,
    from_member_silent,
    to_manager_cut,
    inside_cut,
)

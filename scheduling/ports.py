"""How are ports of the host counted, and where are those that a pod asks for free?

Plugin NodePorts refuses a pod whose port some pod on the node has on the same address; 0.0.0.0
means all addresses. Per protocol and port a node has WHOLE of a made-up resource: a pod on
0.0.0.0 takes all of it, a pod on one address a single unit; and per address a node has one unit
of a second resource. That is the rule itself, so requests, reservations and placements hold ports
like any other amount.

Every node offers every port, and anybody invents ports. So they have no rows in the matrices that
all gangs share: it is kept which nodes have pods with a port (`Taken`), and where ports are free is
worked out only for the shapes that ask for them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

HostPort = tuple[str, str, int]
"""Address (empty: all), protocol (empty: TCP) and port."""

Requests = tuple[tuple[str, int], ...]

Taken = Mapping[str, Mapping[str, int]]
"""How much is taken of which ports, by resource and by the name of the node: a value."""

NOTHING: Taken = {}
NOTHING_ON: Mapping[str, int] = {}

WHOLE = 2**20
"""More than the pods of a node times their addresses."""

_PREFIX = "hostPort:"
_ALL = "0.0.0.0"  # noqa: S104 # read, not bound


def port_amounts(ports: Iterable[HostPort]) -> dict[str, int]:
    """Return what a pod with these ports takes on its node; a port named twice is one."""
    amounts: Counter[str] = Counter()
    for address, protocol, port in {_sanitized(port) for port in ports}:
        name = f"{_PREFIX}{protocol}:{port}"
        amounts[name] += WHOLE if address == _ALL else 1
        if address != _ALL:
            amounts[f"{name}:{address}"] = 1
    return {name: min(amount, WHOLE) for name, amount in amounts.items()}


def _sanitized(port: HostPort) -> HostPort:
    address, protocol, number = port
    return address or _ALL, protocol or "TCP", number


def is_port(resource: str) -> bool:
    """Say whether the resource is one made up for host ports."""
    return resource.startswith(_PREFIX)


def offered(resource: str) -> int:
    """Return how much of a port every node has: one unit of an address, all of the rest."""
    return WHOLE if resource.count(":") == 2 else 1


def spoken(resource: str) -> str:
    """Name the port as people do: `host port 8080/TCP`, with its address if it has one."""
    _, protocol, port, *address = resource.split(":", 3)
    return f"host port {port}/{protocol}" + (f" on {address[0]}" if address else "")


# ---- which are taken


class PortLedger:
    """The ports that are taken, kept from events by one owner.

    A snapshot shares what does not change until the next one: an event copies the nodes of one port
    at most once per snapshot, and nothing where nobody asked for a snapshot.
    """

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, int]] = {}
        self._own: set[str] = set()
        self._snapshot: Taken | None = None

    @property
    def now(self) -> Taken:
        """Return what is taken, which the next event changes."""
        return self._taken

    def snapshot(self) -> Taken:
        """Return what is taken at this moment; the same object while nothing has changed."""
        if self._snapshot is None:
            self._snapshot = dict(self._taken)
            self._own.clear()
        return self._snapshot

    def put(self, resource: str, node: str, total: int) -> None:
        """Note how much of a port is taken on a node."""
        self._snapshot = None
        if resource not in self._own:
            self._own.add(resource)
            self._taken[resource] = dict(self._taken.get(resource, {}))
        on = self._taken[resource]
        if total:
            on[node] = total
        else:
            on.pop(node, None)
        if not on:
            del self._taken[resource]
            self._own.discard(resource)


def added(taken: Taken, more: Iterable[tuple[str, str, int]]) -> Taken:
    """Return what is taken with more of it, by resource and node; less where that is negative."""
    found: dict[str, dict[str, int]] = {}
    for resource, node, amount in more:
        on = found.setdefault(resource, dict(taken.get(resource, {})))
        on[node] = on.get(node, 0) + amount
    return {**taken, **found} if found else taken


def differing(before: Taken, now: Taken) -> tuple[set[str], set[str]]:
    """Return the nodes where more or less is taken of some port now, and those where it is less."""
    changed: set[str] = set()
    less: set[str] = set()
    for resource in before.keys() | now.keys() if before is not now else ():
        was, on = before.get(resource, {}), now.get(resource, {})
        for node in was.keys() | on.keys() if was is not on else ():
            if was.get(node, 0) != on.get(node, 0):
                changed.add(node)
            if was.get(node, 0) > on.get(node, 0):
                less.add(node)
    return changed, less


# ---- where they are free


def left(resource: str, taken: Taken, index: Mapping[str, int]) -> NDArray[np.int64]:
    """Return how much of a port is left on each node; `index` says where each has its place."""
    free = np.full(len(index), offered(resource), dtype=np.int64)
    there = taken.get(resource, NOTHING_ON)
    on = [(index[node], amount) for node, amount in there.items() if node in index]
    if on:
        at, amounts = np.array(on, dtype=np.int64).T
        free[at] -= amounts
    return free


def pods_by_ports(
    asked: Requests, taken: Taken, index: Mapping[str, int], beside: Requests = ()
) -> NDArray[np.int64]:
    """Return how many pods with these ports each node takes: one where all are free, else none.

    Only nodes that have one of the ports are looked at. `beside` is what another pod has taken
    before on each node.
    """
    before = dict(beside)
    fitting = np.ones(len(index), dtype=np.int64)
    for resource, amount in asked:
        spare = offered(resource) - before.get(resource, 0) - amount
        if spare < 0:
            fitting[:] = 0
        there = taken.get(resource, NOTHING_ON)
        full = [index[node] for node, used in there.items() if used > spare and node in index]
        fitting[full] = 0
    return fitting

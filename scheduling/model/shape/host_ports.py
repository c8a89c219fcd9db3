"""Host ports as made-up resources: what a pod takes of them, and what a node offers.

Plugin NodePorts refuses a pod whose port some pod on the node has on the same address; 0.0.0.0
is all addresses. Per protocol and port a node has WHOLE of a made-up resource: a pod on
0.0.0.0 takes all of it, a pod on one address a single unit; and per address a node has one unit
of a second resource. That is the rule itself, so requests, reservations and placements hold ports
like any other amount.
"""

from collections import Counter
from collections.abc import Iterable

HostPort = tuple[str, str, int]
"""Address (empty: all), protocol (empty: TCP) and port."""


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


def port_in_words(resource: str) -> str:
    """Name the port for messages: `host port 8080/TCP`, with its address if it has one."""
    _, protocol, port, *address = resource.split(":", 3)
    return f"host port {port}/{protocol}" + (f" on {address[0]}" if address else "")

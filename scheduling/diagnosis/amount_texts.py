"""Formats amounts, numbers of nodes and names of users for messages, within their limits."""

from collections.abc import Sequence

from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.volumes.node_volume_limits import disk_in_words, is_attach
from scheduling.model.amounts import CPU, MEMORY, PODS
from scheduling.model.shape.host_ports import is_port, port_in_words
from scheduling.model.verdict import MESSAGE_LIMIT

SHOWN = 80
"""How much of a label's key or value a message shows."""


def number_of_nodes(room: FreeCapacity) -> str:
    """Write how many nodes there are."""
    count = len(room.columns.names)
    return "1 node" if count == 1 else f"{count} nodes" if count else "there are no nodes"


def amount_up(resource: str, amount: int) -> str:
    """Write what is needed with its resource, rounded up where it must be rounded."""
    if is_port(resource):
        return port_in_words(resource)
    if is_attach(resource):
        return f"{amount} {disk_in_words(resource)}"
    if resource == PODS:
        return f"{amount} pod slot" + ("s" if amount != 1 else "")
    return f"{written(resource, amount, up=1)} {resource}"


def amount_down(resource: str, amount: int) -> str:
    """Write what is free, rounded down where it must be rounded."""
    return written(resource, amount, up=0)


def written(resource: str, amount: int, *, up: int) -> str:
    """Write an amount in usual units: cpu in whole or milli, bytes in Gi or Mi, devices plain."""
    if resource == CPU:
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if not _is_in_bytes(resource):
        return str(amount)
    for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if amount >= size:
            tenths = (amount * 10 + (size - 1) * up) // size
            whole, part = divmod(tenths, 10)
            return f"{whole}.{part}{unit}" if part else f"{whole}{unit}"
    return str(amount)


def _is_in_bytes(resource: str) -> bool:
    return resource in (MEMORY, "ephemeral-storage") or resource.startswith("hugepages-")


def shown(text: str) -> str:
    """Cut what tenants write: a key or a domain's name."""
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def bounded(said: Sequence[str], joint: str) -> str:
    """Join sentences as far as the limit allows, and say how many were left out."""
    text = said[0]
    for at, sentence in enumerate(said[1:], start=1):
        rest = f"{joint}and {len(said) - at} more"
        if len(text) + len(joint) + len(sentence) + len(rest) > MESSAGE_LIMIT:
            text += rest
            break
        text += joint + sentence
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


def lasting(seconds: float) -> str:
    """Write a time as people do, in its two largest units."""
    left, parts = int(seconds), list[str]()
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        if left >= size and len(parts) < 2:
            parts.append(f"{left // size}{unit}")
        left %= size
    return "".join(parts) or "0s"

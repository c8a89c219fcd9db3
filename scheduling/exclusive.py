"""Which made-up resources does every node offer, so that pods keep each other out?

Host ports (`ports`) and disks that pods name themselves (`disks`). They are many: a table holds
rows only for those that somebody waiting asks for (`NodeTable.offer`).
"""

from scheduling import disks, ports


def is_exclusive(resource: str) -> bool:
    """Say whether every node offers the resource, and pods get in each other's way over it."""
    return ports.is_port(resource) or disks.is_disk(resource)


def offered(resource: str) -> int:
    """Return how much of it every node has."""
    return ports.offered(resource) if ports.is_port(resource) else ports.WHOLE


def spoken(resource: str) -> str:
    """Name it as people do."""
    return ports.spoken(resource) if ports.is_port(resource) else disks.spoken(resource)

"""Holds what was read of a cluster for a report, and what could not be read."""

from dataclasses import dataclass, replace

from kube.devices.device_index import DeviceIndex
from kube.objects.core import Node, Pod
from kube.objects.gang import Gang
from kube.objects.queues.queue import GangQueue

GANGS, QUEUES, NODES, PODS, DEVICES = "gangs", "queues", "nodes", "pods", "devices"


@dataclass(frozen=True, slots=True)
class Unread:
    """A kind that could not be listed, and why."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The objects of one moment; `namespace` is the one of the gangs, empty for all.

    `pods` are those on nodes. `devices` are given where the cluster has classes of some, with the
    pods that are not bound (`unbound`) where a placement may promise devices to them.
    """

    gangs: tuple[Gang, ...] = ()
    queues: tuple[GangQueue, ...] = ()
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    namespace: str = ""
    unread: tuple[Unread, ...] = ()
    devices: DeviceIndex | None = None
    unbound: tuple[Pod, ...] = ()

    def lacks(self, kind: str) -> bool:
        """Say whether a kind could not be listed."""
        return any(each.kind == kind for each in self.unread)

    def with_unread(self, more: Unread) -> "Snapshot":
        """Return the same with one more thing that could not be read."""
        return replace(self, unread=(*self.unread, more))

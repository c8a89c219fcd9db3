"""Fields read of Gang and GangQueue; `crds` says what the API server allows in them."""

from collections.abc import Mapping

from kube.objects.base import ObjectMeta, OrNull, Part, Quantities, Quantity, Slim


class GangPodSet(Slim, frozen=True):
    """A pod set of a gang as understood: how many pods it has, how many must start at once."""

    name: str = ""
    count: int = 0
    minimum: int = 0
    hosts: int = 1


class GangTopology(Slim, frozen=True):
    """The labels within one value of which workers, and the pods of a replica, are to be."""

    required: str = ""
    preferred: str = ""
    replica: str = ""


class GangSpec(Part, frozen=True):
    """What Muster understood of a RayCluster."""

    queue: str = ""
    priority: int = 0
    ray_cluster_uid: str = ""
    pod_sets: OrNull[tuple[GangPodSet, ...]] = ()
    topology: GangTopology | None = None


class GangCondition(Slim, frozen=True):
    """A condition of a gang, whole, because it is written back with its transition time."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""
    observed_generation: int = 0


class HolderShare(Slim, frozen=True):
    """Who holds how much of a resource."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    amount: Quantity = ""


class GangShortage(Part, frozen=True):
    """What stops the next pod of a pod set."""

    resource: str = ""
    each: Quantity = ""
    needed: Quantity = ""
    free: Quantity = ""
    left: Quantity = ""
    largest: Quantity = ""
    total: Quantity = ""
    holders: OrNull[tuple[HolderShare, ...]] = ()


class GangPodSetStatus(Slim, frozen=True):
    """How far a pod set has come, and what it waits for."""

    name: str = ""
    count: int = 0
    minimum: int = 0
    gated: int = 0
    released: int = 0
    not_released: int = 0
    bound: int = 0
    ready: int = 0
    kept: int = 0
    reason: str = ""
    message: str = ""
    shortage: GangShortage | None = None


class PlacedShape(Part, frozen=True):
    """The nodes of the pods of one shape (and replica)."""

    shape: str = ""
    replica: str = ""
    requests: OrNull[Quantities] = {}
    nodes: OrNull[Mapping[str, int]] = {}
    wave: int = 0


class PlacedPodSet(Part, frozen=True):
    """The assignments of one pod set."""

    name: str = ""
    assignments: OrNull[tuple[PlacedShape, ...]] = ()


class GangPlacement(Part, frozen=True):
    """A placement as written down, with the epoch of the leader that wrote it."""

    epoch: int = 0
    pod_sets: OrNull[tuple[PlacedPodSet, ...]] = ()


class GangStatus(Part, frozen=True):
    """What Muster has decided and done about a gang."""

    phase: str = ""
    epoch: int | None = None
    decided: int = 0
    position: int | None = None
    ready: str = ""
    ready_pods: int = 0
    total_pods: int = 0
    reason: str = ""
    message: str = ""
    conditions: OrNull[tuple[GangCondition, ...]] = ()
    pod_sets: OrNull[tuple[GangPodSetStatus, ...]] = ()
    placement: GangPlacement | None = None


class GangMeta(ObjectMeta, frozen=True):
    """What a Gang says about itself, with what holds it when it is deleted."""

    finalizers: OrNull[tuple[str, ...]] = ()


class Gang(Slim, frozen=True):
    """The gang of a RayCluster."""

    metadata: GangMeta = GangMeta()
    spec: GangSpec = GangSpec()
    status: GangStatus = GangStatus()


class GangQueueSpec(Part, frozen=True):
    """Of a queue only what is in use so far: that it exists."""

    parent: str = ""


class GangQueue(Slim, frozen=True):
    """A queue."""

    metadata: ObjectMeta = ObjectMeta()
    spec: GangQueueSpec = GangQueueSpec()

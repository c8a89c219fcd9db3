"""Decodes the fields of Events that reports need."""

from kube.objects.base import ObjectMeta, Slim


class Event(Slim, frozen=True):
    """An Event of the core group."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None


class ServiceState(Slim, frozen=True):
    """The RayCluster of one version of a RayService."""

    ray_cluster_name: str = ""


class RayOwnerStatus(Slim, frozen=True):
    """The RayClusters that a RayJob or a RayService made, and how each kind says its state."""

    ray_cluster_name: str = ""
    active_service_status: ServiceState | None = None
    pending_service_status: ServiceState | None = None
    job_deployment_status: str = ""
    service_status: str = ""
    state: str = ""
    reason: str = ""
    message: str = ""


class RayOwnerSpec(Slim, frozen=True):
    """Whether a RayCluster or a RayJob is suspended."""

    suspend: bool | None = None


class RayOwner(Slim, frozen=True):
    """A RayCluster, or a RayJob or RayService that makes some."""

    metadata: ObjectMeta = ObjectMeta()
    spec: RayOwnerSpec = RayOwnerSpec()
    status: RayOwnerStatus = RayOwnerStatus()

    @property
    def clusters(self) -> tuple[str, ...]:
        """Name its RayClusters, one that is not ready yet first."""
        status, none = self.status, ServiceState()
        pending, active = status.pending_service_status, status.active_service_status
        found = (status, pending or none, active or none)
        return tuple(each.ray_cluster_name for each in found if each.ray_cluster_name)

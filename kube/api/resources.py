"""The API resources that Muster reads or writes."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object, as paths name it."""

    group: str
    version: str
    plural: str
    namespaced: bool = True

    def path(
        self, namespace: str | None = None, name: str | None = None, subresource: str | None = None
    ) -> str:
        """Return the path of an object, or of the collection when there is no name."""
        assert self.namespaced or namespace is None, f"{self.plural} live in no namespace"
        assert name is None or (namespace is not None) == self.namespaced, "a name needs its place"
        base = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        place = f"/namespaces/{quote(namespace, safe='')}" if namespace is not None else ""
        tail = "".join(f"/{quote(part, safe='')}" for part in (name, subresource) if part)
        return f"{base}{place}/{self.plural}{tail}"


PODS = Resource(group="", version="v1", plural="pods", namespaced=True)
NODES = Resource(group="", version="v1", plural="nodes", namespaced=False)
NAMESPACES = Resource(group="", version="v1", plural="namespaces", namespaced=False)
EVENTS = Resource(group="", version="v1", plural="events", namespaced=True)
PRIORITY_CLASSES = Resource(
    group="scheduling.k8s.io", version="v1", plural="priorityclasses", namespaced=False
)
DEVICE_CLASSES = Resource(
    group="resource.k8s.io", version="v1", plural="deviceclasses", namespaced=False
)
LIMIT_RANGES = Resource(group="", version="v1", plural="limitranges", namespaced=True)
RESOURCE_QUOTAS = Resource(group="", version="v1", plural="resourcequotas", namespaced=True)
RUNTIME_CLASSES = Resource(
    group="node.k8s.io", version="v1", plural="runtimeclasses", namespaced=False
)
LEASES = Resource(group="coordination.k8s.io", version="v1", plural="leases", namespaced=True)
RAY_CLUSTERS = Resource(group="ray.io", version="v1", plural="rayclusters", namespaced=True)
RAY_JOBS = Resource(group="ray.io", version="v1", plural="rayjobs", namespaced=True)
RAY_SERVICES = Resource(group="ray.io", version="v1", plural="rayservices", namespaced=True)
APP_WRAPPERS = Resource(
    group="workload.codeflare.dev", version="v1beta2", plural="appwrappers", namespaced=True
)
MCAD_APP_WRAPPERS = Resource(
    group="mcad.ibm.com", version="v1beta1", plural="appwrappers", namespaced=True
)
SECRETS = Resource(group="", version="v1", plural="secrets", namespaced=True)
CONFIG_MAPS = Resource(group="", version="v1", plural="configmaps", namespaced=True)
ENDPOINT_SLICES = Resource(
    group="discovery.k8s.io", version="v1", plural="endpointslices", namespaced=True
)
BUDGETS = Resource(group="policy", version="v1", plural="poddisruptionbudgets", namespaced=True)
PROVISIONING_REQUESTS = Resource(
    group="autoscaling.x-k8s.io", version="v1", plural="provisioningrequests", namespaced=True
)
POD_TEMPLATES = Resource(group="", version="v1", plural="podtemplates", namespaced=True)
GANGS = Resource(group="muster.dev", version="v1alpha1", plural="gangs", namespaced=True)
GANG_QUEUES = Resource(
    group="muster.dev", version="v1alpha1", plural="gangqueues", namespaced=False
)
MEMBER_CLUSTERS = Resource(
    group="muster.dev", version="v1alpha1", plural="memberclusters", namespaced=False
)
GANG_OFFERS = Resource(group="muster.dev", version="v1alpha1", plural="gangoffers", namespaced=True)
CLAIMS = Resource(group="", version="v1", plural="persistentvolumeclaims", namespaced=True)
VOLUMES = Resource(group="", version="v1", plural="persistentvolumes", namespaced=False)
STORAGE_CLASSES = Resource(
    group="storage.k8s.io", version="v1", plural="storageclasses", namespaced=False
)
CSI_DRIVERS = Resource(group="storage.k8s.io", version="v1", plural="csidrivers", namespaced=False)
CSI_CAPACITIES = Resource(
    group="storage.k8s.io", version="v1", plural="csistoragecapacities", namespaced=True
)
CSI_NODES = Resource(group="storage.k8s.io", version="v1", plural="csinodes", namespaced=False)
ATTACHMENTS = Resource(
    group="storage.k8s.io", version="v1", plural="volumeattachments", namespaced=False
)

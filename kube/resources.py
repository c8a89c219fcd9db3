"""Which API resources does Muster read or write?"""

from kube.client import Resource

PODS = Resource(group="", version="v1", plural="pods", namespaced=True)
NODES = Resource(group="", version="v1", plural="nodes", namespaced=False)
NAMESPACES = Resource(group="", version="v1", plural="namespaces", namespaced=False)
EVENTS = Resource(group="events.k8s.io", version="v1", plural="events", namespaced=True)
PRIORITY_CLASSES = Resource(
    group="scheduling.k8s.io", version="v1", plural="priorityclasses", namespaced=False
)
DEVICE_CLASSES = Resource(
    group="resource.k8s.io", version="v1", plural="deviceclasses", namespaced=False
)
RAY_CLUSTERS = Resource(group="ray.io", version="v1", plural="rayclusters", namespaced=True)
GANGS = Resource(group="muster.dev", version="v1alpha1", plural="gangs", namespaced=True)
QUEUES = Resource(group="muster.dev", version="v1alpha1", plural="gangqueues", namespaced=False)

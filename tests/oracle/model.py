"""A world of the oracle, and its scenes while pods are bound one after the other.

A world is plain manifests, so that the judge and the core each read them in their own way. Its
slot is in every name, label key and namespace, so that worlds live side by side in one cluster:
nodes and topology domains of one mean nothing to the pods of another.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
Bound = tuple[Json, Json]
"""A pod and the node it is bound to."""

GATE = "muster.dev/gang"
HIGH, GANG, LOW = "oracle-high", "oracle-gang", "oracle-low"
"""Priority classes; a pod of a gang is of the one in the middle, and none of them preempts."""

PRIORITIES = {HIGH: 100, GANG: 0, LOW: -100}
POD_SET = "set"
"""The label that names the pod set of a gang's pod."""


@dataclass(frozen=True)
class World:
    """One cluster with its question; `slot` is the place that it takes among others.

    A manifest says how the object is to stand: `status` and `metadata.deletionTimestamp` are
    brought about after it was created, in the order of the lists.
    """

    slot: str
    nodes: list[Json]
    residents: list[Json]
    gang: list[Json]
    objects: list[Json] = field(default_factory=list)
    """All that is neither node nor pod nor namespace, such as volumes and their claims."""

    @property
    def namespaces(self) -> tuple[str, str]:
        """Where its pods live: the gang in the first."""
        return namespaces(self.slot)


def namespaces(slot: str) -> tuple[str, str]:
    """Return the two namespaces of a slot."""
    return f"{slot}-a", f"{slot}-b"


def namespace_labels(slot: str, name: str) -> dict[str, str]:
    """Return the labels of a namespace: its world, and which of the two it is."""
    return {"world": slot, "team": name[-1]}


@dataclass(frozen=True)
class Scene:
    """Nodes, the pods bound to them, and all else that a constraint may look at.

    `nominated` pods have been promised their node and are not bound; `finished` ones stand on it
    and hold nothing; `ignored` are the names of the ingredients left aside.
    """

    nodes: list[Json]
    bound: list[Bound]
    namespaces: dict[str, dict[str, str]]
    objects: list[Json] = field(default_factory=list)
    nominated: list[Bound] = field(default_factory=list)
    finished: list[Bound] = field(default_factory=list)
    ignored: frozenset[str] = frozenset()

    def on(self, node: Json) -> Iterator[Json]:
        """Give the pods that are bound to the node."""
        return (pod for pod, where in self.bound if where is node)


def scene(world: World) -> Scene:
    """Return the scene before the gang: a finished pod holds nothing, a terminating one all."""
    by_name = {name_of(node): node for node in world.nodes}
    bound: list[Bound] = []
    nominated: list[Bound] = []
    finished: list[Bound] = []
    for pod in world.residents:
        node = by_name[node_of(pod) or pod["status"]["nominatedNodeName"]]
        if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            finished.append((pod, node))
        else:
            (bound if node_of(pod) else nominated).append((pod, node))
    labels = {name: namespace_labels(world.slot, name) for name in world.namespaces}
    return Scene(world.nodes, bound, labels, world.objects, nominated, finished)


def name_of(manifest: Json) -> str:
    """Return the name of an object."""
    name: str = manifest["metadata"]["name"]
    return name


def node_of(pod: Json) -> str:
    """Return the name of the node that a pod is bound to, or ""."""
    name: str = pod["spec"].get("nodeName", "")
    return name


def pod_set_of(pod: Json) -> str:
    """Return the pod set of a gang's pod."""
    name: str = pod["metadata"]["labels"][POD_SET]
    return name


def priority_of(pod: Json) -> int:
    """Return how important a pod is."""
    return PRIORITIES.get(pod["spec"].get("priorityClassName", ""), 0)

"""What does a random small cluster look like, with pods on it and a gang in front of it?

A world is plain manifests, so that the judge and the core each read them in their own way. Its
name is in every name, label key and namespace, so that worlds live side by side in one cluster:
nodes and topology domains of one mean nothing to the pods of another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Json = dict[str, Any]

GPU = "nvidia.com/gpu"
GATE = "muster.dev/gang"
GANG_LABEL = "app"


@dataclass(frozen=True)
class World:
    """One cluster with its question; `slot` is the place that it takes among others."""

    slot: str
    nodes: list[Json]
    residents: list[Json]
    gang: list[Json]

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


def world(slot: str, seed: str) -> World:
    """Draw the world of this seed; the slot only names it."""
    return _Draw(slot, seed).world()


class _Draw:
    """One world in the making."""

    def __init__(self, slot: str, seed: str) -> None:
        self.slot = slot
        self.random = Random(seed)
        # A node that takes the name of one just deleted inherits how long it has been silent.
        self.node_names = f"{slot}-{seed.replace('/', '-')}-n"
        self.host, self.zone = f"{slot}/host", f"{slot}/zone"

    def world(self) -> World:
        count = self.random.choice((1, 2, 3, 3, 4, 5))
        nodes = [self._node(f"{self.node_names}{at}") for at in range(count)]
        names = [node["metadata"]["name"] for node in nodes]
        residents = [self._resident(at, names) for at in range(self.random.randint(0, 4))]
        return World(self.slot, nodes, residents, self._gang())

    def _maybe(self, chance: float, make: Callable[[], Any], otherwise: Any = None) -> Any:
        return make() if self.random.random() < chance else otherwise

    # ---- nodes

    def _node(self, name: str) -> Json:
        amounts = {
            "cpu": str(self.random.choice((4, 8, 16))),
            "memory": f"{self.random.choice((8, 16))}Gi",
            "pods": str(self.random.choice((3, 5, 110))),
            "ephemeral-storage": f"{self.random.choice((2, 10))}Gi",
            **self._maybe(0.6, lambda: {GPU: str(self.random.choice((2, 4, 8)))}, {}),
        }
        labels = {
            "world": self.slot,
            self.host: name,
            **self._maybe(0.9, lambda: {self.zone: self.random.choice("xy")}, {}),
            **self._maybe(0.5, lambda: {"tier": self.random.choice(("1", "2", "10"))}, {}),
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "taints": self._maybe(0.2, lambda: [self._taint()], []),
                "unschedulable": self.random.random() < 0.05,
            },
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }

    def _taint(self) -> Json:
        effects = ("NoSchedule", "NoExecute", "PreferNoSchedule")
        return {
            "key": "busy",
            "value": self.random.choice("12"),
            "effect": self.random.choice(effects),
        }

    # ---- pods

    def _resident(self, at: int, nodes: list[str]) -> Json:
        namespace = self.random.choice(namespaces(self.slot))
        labels = {GANG_LABEL: self.random.choice(("head", "worker", "web"))}
        pod = self._pod(f"r{at}", namespace, labels, self._amounts(most=2))
        pod["spec"]["nodeName"] = self.random.choice(nodes)
        self._constrain(pod, 0.3)
        return pod

    def _gang(self) -> list[Json]:
        sets = self.random.choice((("worker",), ("worker",), ("head", "worker"), ("a", "b", "c")))
        pods: list[Json] = []
        for name in sets:
            template = self._member(name)
            count = 1 if name == "head" else self.random.randint(1, 4)
            pods += [_copy(template, f"{name}-{at}") for at in range(count)]
        return pods

    def _member(self, name: str) -> Json:
        app = name if name in ("head", "worker") else self.random.choice(("head", "worker"))
        labels = {GANG_LABEL: app, "set": name}
        pod = self._pod(name, namespaces(self.slot)[0], labels, self._amounts(most=3))
        spec = pod["spec"]
        spec["schedulingGates"] = [{"name": GATE}]
        spec["nodeSelector"] = {
            "world": self.slot,
            **self._maybe(0.1, lambda: {"tier": self.random.choice("12")}, {}),
        }
        spec["tolerations"] = self._maybe(0.3, lambda: [self._toleration()], [])
        self._maybe(0.2, lambda: self._require_nodes(spec))
        self._constrain(pod, 0.35)
        return pod

    def _pod(self, name: str, namespace: str, labels: Json, amounts: Json) -> Json:
        resources = {"requests": amounts, "limits": {k: v for k, v in amounts.items() if k == GPU}}
        container = {"name": "main", "image": "none", "resources": resources}
        spec: Json = {"containers": [container], "terminationGracePeriodSeconds": 0}
        self._maybe(0.2, lambda: self._add_init(spec))
        self._maybe(0.06, lambda: self._add_pod_level(spec))
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def _amounts(self, most: int) -> Json:
        return {
            "cpu": str(self.random.randint(0, most)),
            "memory": f"{self.random.randint(0, most)}Gi",
            **self._maybe(0.15, lambda: {"ephemeral-storage": "1Gi"}, {}),
            **self._maybe(0.2, lambda: self._gpus(most), {}),
        }

    def _gpus(self, most: int) -> Json:
        return {GPU: str(self.random.randint(1, most))}

    def _add_init(self, spec: Json) -> None:
        spec["initContainers"] = [
            {
                "name": f"i{at}",
                "image": "none",
                "resources": {"requests": {"cpu": str(self.random.randint(1, 3))}},
                **self._maybe(0.5, lambda: {"restartPolicy": "Always"}, {}),
            }
            for at in range(self.random.randint(1, 2))
        ]

    def _add_pod_level(self, spec: Json) -> None:
        """Ask for enough at the level of the pod: less than its containers is refused."""
        spec["resources"] = {"requests": {"cpu": str(self.random.randint(3, 5))}}
        for each in (*spec["containers"], *spec.get("initContainers", ())):
            each["resources"]["requests"]["cpu"] = "1"

    def _toleration(self) -> Json:
        return self.random.choice(
            (
                {"operator": "Exists"},
                {"key": "busy", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "busy", "value": self.random.choice("12")},
                {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
            )
        )

    def _require_nodes(self, spec: Json) -> None:
        terms = [self._node_term() for _ in range(self.random.choice((1, 1, 2)))]
        terms += self._maybe(0.1, lambda: [{}], [])
        required = {"nodeSelectorTerms": terms}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }

    def _node_term(self) -> Json:
        names = [f"{self.node_names}{at}" for at in (0, 1)]
        operator = self.random.choice(("In", "NotIn"))
        return self.random.choice(
            (
                {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
                {"matchExpressions": [{"key": "tier", "operator": "Gt", "values": ["1"]}]},
                {"matchExpressions": [{"key": "tier", "operator": "Lt", "values": ["10"]}]},
                {"matchExpressions": [{"key": self.zone, "operator": operator, "values": ["x"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": names[:1]}]},
                {
                    "matchFields": [
                        {"key": "metadata.name", "operator": "NotIn", "values": names[1:]}
                    ]
                },
            )
        )

    # ---- what pods mind about each other

    def _constrain(self, pod: Json, chance: float) -> None:
        """Give some pods host ports, or affinity to others or against them."""
        self._maybe(chance * 0.5, lambda: self._add_ports(pod["spec"]))
        self._maybe(chance * 0.5, lambda: self._add_terms(pod["spec"], "podAffinity"))
        self._maybe(chance, lambda: self._add_terms(pod["spec"], "podAntiAffinity"))

    def _add_terms(self, spec: Json, kind: str) -> None:
        terms = [self._term() for _ in range(self.random.choice((1, 1, 1, 2)))]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        spec["affinity"] = {**spec.get("affinity", {}), kind: required}

    def _term(self) -> Json:
        a, b = namespaces(self.slot)
        world = {"matchLabels": {"world": self.slot}}
        one_team = {"matchLabels": {"world": self.slot, "team": self.random.choice("ab")}}
        selector = self._selector()
        keys = {} if "set" in str(selector) else {"matchLabelKeys": ["set"]}
        return {
            "topologyKey": self.random.choice((self.host, self.host, self.zone)),
            "labelSelector": selector,
            **self._maybe(0.2, lambda: {"namespaces": self.random.choice(([b], [a, b]))}, {}),
            **self._maybe(
                0.2, lambda: {"namespaceSelector": self.random.choice((world, one_team))}, {}
            ),
            **self._maybe(0.1, lambda: keys, {}),
        }

    def _selector(self) -> Json:
        apps = self.random.sample(("head", "worker", "web"), self.random.choice((1, 1, 2)))
        operator = self.random.choice(("In", "In", "NotIn"))
        return self.random.choice(
            (
                {"matchLabels": {GANG_LABEL: apps[0]}},
                {"matchExpressions": [{"key": GANG_LABEL, "operator": operator, "values": apps}]},
                {"matchExpressions": [{"key": "set", "operator": "Exists"}]},
                {},
            )
        )

    def _add_ports(self, spec: Json) -> None:
        spec["containers"][0]["ports"] = [
            {
                "containerPort": port,
                "hostPort": port,
                **self._maybe(0.2, lambda: {"protocol": "UDP"}, {}),
                **self._maybe(0.4, lambda: {"hostIP": self.random.choice(_ADDRESSES)}, {}),
            }
            for port in self.random.sample((8080, 8081), self.random.randint(1, 2))
        ]
        if self.random.random() < 0.2:
            spec["hostNetwork"] = True


_ADDRESSES = ("0.0.0.0", "10.0.0.1", "10.0.0.2")


def _copy(template: Json, name: str) -> Json:
    return {**template, "metadata": {**template["metadata"], "name": name}}

"""Makes random small clusters, with pods on them and a gang in front."""

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from random import Random

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient
from tests.oracle.ingredients import INGREDIENTS
from tests.oracle.model import GANG, GATE, POD_SET, Json, World, name_of


@dataclass(frozen=True)
class Drawn:
    """A world, and the names of the ingredients that changed anything in it."""

    world: World
    present: frozenset[str]


def world(slot: str, seed: str, turn: int = 1) -> Drawn:
    """Draw the world of this seed; the slot and the turn, if it comes up again, only name it."""
    return _Making(slot, seed, turn).drawn()


class _Making:
    """One world in the making: bare nodes and pods, to which each ingredient adds its own."""

    def __init__(self, slot: str, seed: str, turn: int) -> None:
        name = f"{seed.replace('/', '-')}-{turn}"
        self.draw = Draw(slot, name, Random(seed))
        self.random = self.draw.random
        self.present: set[str] = set()
        chances = [(each, Random(f"{seed}/{each.name}")) for each in INGREDIENTS]
        self.taking_part: list[tuple[Ingredient, Draw]] = [
            (each, Draw(slot, name, chance, self.draw.objects))
            for each, chance in chances
            if chance.random() < each.share
        ]

    def drawn(self) -> Drawn:
        """Draw everything, in the order that the package of the ingredients promises."""
        nodes = [self._node(at) for at in range(self.random.choice((1, 2, 3, 3, 4, 5, 6)))]
        self._add(nodes, lambda each, draw: each.add_to_nodes(draw, nodes))
        residents = [self._resident(at, nodes) for at in range(self.random.randint(0, 4))]
        sets = self.random.choice(_POD_SETS)
        gang = [pod for name in sets for pod in self._pod_set(name, nodes)]
        self._add(gang, lambda each, draw: each.add_to_gang(draw, gang))
        made = World(self.draw.slot, nodes, residents, gang, self.draw.objects)
        return Drawn(made, frozenset(self.present))

    def _add(self, to: list[Json], add: Callable[[Ingredient, Draw], None]) -> None:
        """Let every ingredient add, and note those that did."""
        for each, draw in self.taking_part:
            before = json.dumps((to, draw.objects))
            add(each, draw)
            if json.dumps((to, draw.objects)) != before:
                self.present.add(each.name)

    def _node(self, at: int) -> Json:
        name = f"{self.draw.node_names}{at}"
        labels = {
            "world": self.draw.slot,
            self.draw.host: name,
            **self.draw.maybe(0.9, lambda: {self.draw.zone: self.random.choice("xy")}, {}),
        }
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        metadata = {"name": name, "labels": labels}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": metadata,
            "spec": {},
            "status": status,
        }

    def _resident(self, at: int, nodes: list[Json]) -> Json:
        labels = {"app": self.random.choice(("head", "worker", "web"))}
        pod = _pod(f"{self.draw.pod_names}r{at}", self.random.choice(self.draw.namespaces), labels)
        pod["spec"]["nodeName"] = name_of(self.random.choice(nodes))
        self._add([pod], lambda each, draw: each.add_to_resident(draw, pod, nodes))
        return pod

    def _pod_set(self, name: str, nodes: list[Json]) -> list[Json]:
        app = name if name in ("head", "worker") else self.random.choice(("head", "worker"))
        pod = _pod(name, self.draw.namespaces[0], {"app": app, POD_SET: name})
        pod["spec"]["schedulingGates"] = [{"name": GATE}]
        pod["spec"]["nodeSelector"] = {"world": self.draw.slot}
        pod["spec"]["priorityClassName"] = GANG
        self._add([pod], lambda each, draw: each.add_to_member(draw, pod, nodes))
        count = 1 if name == "head" else self.random.randint(1, 4)
        return [named_copy(pod, f"{self.draw.pod_names}{name}-{at}") for at in range(count)]


_POD_SETS = (("worker",), ("worker",), ("head", "worker"), ("a", "b", "c"))


def _pod(name: str, namespace: str, labels: dict[str, str]) -> Json:
    container: Json = {"name": "main", "image": "none", "resources": {}}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def named_copy(template: Json, name: str) -> Json:
    """A pod of another name."""
    pod = deepcopy(template)
    pod["metadata"]["name"] = name
    return pod

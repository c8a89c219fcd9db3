"""Taints of nodes, cordoned nodes, and what pods tolerate."""

from collections.abc import Sequence

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient
from tests.oracle.model import Json, Scene

_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class Taints(Ingredient):
    """A node refuses pods that do not tolerate every taint with NoSchedule or NoExecute."""

    name = "taints"
    share = 0.7

    def add_to_nodes(self, draw: Draw, nodes: Sequence[Json]) -> None:
        for node in nodes:
            if draw.happens(0.25):
                node["spec"]["taints"] = [_taint(draw)]
            if draw.happens(0.07):
                node["spec"]["unschedulable"] = True

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.4):
            pod["spec"]["tolerations"] = [_toleration(draw)]

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        spec = node["spec"]
        taints = [each for each in spec.get("taints", []) if each["effect"] != "PreferNoSchedule"]
        if spec.get("unschedulable"):
            taints.append(_CORDON)
        tolerations = pod["spec"].get("tolerations", [])
        return not all(any(_covers(each, taint) for each in tolerations) for taint in taints)


def _taint(draw: Draw) -> Json:
    effects = ("NoSchedule", "NoExecute", "PreferNoSchedule")
    return {
        "key": "busy",
        "value": draw.random.choice("12"),
        "effect": draw.random.choice(effects),
    }


def _toleration(draw: Draw) -> Json:
    return draw.random.choice(
        (
            {"operator": "Exists"},
            {"key": "busy", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "busy", "value": draw.random.choice("12")},
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
        )
    )


def _covers(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("key", taint["key"]) != taint["key"]:
        return False
    exists = toleration.get("operator") == "Exists"
    return exists or toleration.get("value", "") == taint.get("value", "")

"""Topology spread constraints that bind."""

from collections import Counter
from collections.abc import Sequence

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.ingredients.node_affinity import NodeAffinity
from tests.oracle.ingredients.taints import Taints
from tests.oracle.model import POD_SET, Json, Scene
from tests.oracle.selectors import selected


class Spread(Ingredient):
    """No domain may hold too many more of the pods that are counted than the one with the least."""

    name = "topology spread"
    reach = Reach.EXISTING_PODS
    hidden_by_pin = True
    share = 0.6

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.6):
            keys = draw.random.choice(
                ([draw.zone], [draw.zone], [draw.host], [draw.zone, draw.host])
            )
            pod["spec"]["topologySpreadConstraints"] = [_constraint(draw, key) for key in keys]

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        constraints = pod["spec"].get("topologySpreadConstraints", [])
        return any(is_uneven(each, constraints, pod, node, scene) for each in constraints)


# ---- what is drawn


def _constraint(draw: Draw, key: str) -> Json:
    selector = _selector(draw)
    by_set = {} if POD_SET in str(selector) else {"matchLabelKeys": [POD_SET]}
    return {
        "topologyKey": key,
        "maxSkew": draw.random.choice((1, 1, 1, 2)),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **draw.maybe(0.2, lambda: by_set, {}),
        **draw.maybe(0.2, lambda: {"minDomains": draw.random.choice((1, 2, 2, 3))}, {}),
        **draw.maybe(0.2, lambda: {"nodeAffinityPolicy": _policy(draw)}, {}),
        **draw.maybe(0.3, lambda: {"nodeTaintsPolicy": _policy(draw)}, {}),
    }


def _policy(draw: Draw) -> str:
    policy: str = draw.random.choice(("Honor", "Ignore"))
    return policy


def _selector(draw: Draw) -> Json:
    apps = draw.random.sample(("head", "worker", "web"), draw.random.choice((1, 2)))
    selector: Json = draw.random.choice(
        (
            {"matchLabels": {"app": "worker"}},
            {"matchLabels": {"app": apps[0]}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": apps}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": apps}]},
            {"matchExpressions": [{"key": POD_SET, "operator": "Exists"}]},
        )
    )
    return selector


# ---- how it is judged


def is_uneven(
    constraint: Json, constraints: Sequence[Json], pod: Json, node: Json, scene: Scene
) -> bool:
    """Say whether one of a pod's constraints speaks against a node; all decide where it counts."""
    key, labels = constraint["topologyKey"], node["metadata"]["labels"]
    if key not in labels:
        return True
    held: Counter[str] = Counter()
    for each in scene.nodes:
        if _has_keys(constraints, each) and _is_eligible(constraint, pod, each, scene):
            there = each["metadata"]["labels"][key]
            held[there] += sum(_is_counted(constraint, pod, other) for other in scene.on(each))
    least = min(held.values()) if len(held) >= constraint.get("minDomains", 1) else 0
    most: int = least + constraint["maxSkew"]
    return held[labels[key]] + _is_counted(constraint, pod, pod) > most


def _has_keys(constraints: Sequence[Json], node: Json) -> bool:
    labels = node["metadata"]["labels"]
    return all(each["topologyKey"] in labels for each in constraints)


def _is_eligible(constraint: Json, pod: Json, node: Json, scene: Scene) -> bool:
    """Say whether a node makes its domain one, and its pods count."""
    honors_affinity = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
    if honors_affinity and NodeAffinity().refuses(pod, node, scene):
        return False
    honors_taints = constraint.get("nodeTaintsPolicy", "Ignore") == "Honor"
    return not honors_taints or not Taints().refuses(pod, _uncordoned(node), scene)


def _uncordoned(node: Json) -> Json:
    """Return the node without its cordon: only the taints that are written down are looked at."""
    return {**node, "spec": {**node["spec"], "unschedulable": False}}


def _is_counted(constraint: Json, pod: Json, other: Json) -> bool:
    labels = other["metadata"]["labels"]
    if other["metadata"]["namespace"] != pod["metadata"]["namespace"]:
        return False
    if "deletionTimestamp" in other["metadata"]:
        return False
    own = pod["metadata"]["labels"]
    keys = [key for key in constraint.get("matchLabelKeys", []) if key in own]
    same = all(labels.get(key) == own[key] for key in keys)
    return same and selected(constraint["labelSelector"], labels)

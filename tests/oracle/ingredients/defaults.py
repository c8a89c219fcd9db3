"""Topology spread constraints that a scheduler's profile adds to pods without any.

A profile is fixed when kube-scheduler starts, and so are the Services here: a watch that tells late
would make answers a matter of luck. Which of them mean anything to a pod is drawn, by its scheduler
and its labels.
"""

from collections.abc import Iterator, Sequence

from tests.oracle.draw import Draw, host_key, zone_key
from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.ingredients.spread import is_uneven
from tests.oracle.model import POD_SET, Json, Scene, namespaces

ONE, TWO = "svc-one", "svc-two"
SELECTORS: tuple[Json, ...] = ({ONE: "yes"}, {TWO: "yes"}, {ONE: "yes", "app": "worker"})
"""Those of the Services beside the gang."""


class Defaults(Ingredient):
    """As `Spread`, but it is the Services of a pod that say whom its constraints count."""

    name = "default spread"
    reach = Reach.COMPANY
    hidden_by_pin = True
    share = 0.35

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        pod["metadata"]["labels"] |= _labels(draw, 0.4)

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.8):
            names = [each["schedulerName"] for each in self.profiles(draw.slot)]
            pod["spec"]["schedulerName"] = draw.random.choice(names)
            pod["metadata"]["labels"] |= _labels(draw, 0.9)

    def standing(self, slot: str) -> Iterator[Json]:
        beside, elsewhere = namespaces(slot)
        for at, selector in enumerate(SELECTORS):
            yield _service(beside, f"s{at}", {"selector": selector})
        yield _service(beside, "none", {})
        yield _service(elsewhere, "far", {"selector": {ONE: "yes", POD_SET: "worker"}})

    def profiles(self, slot: str) -> list[Json]:
        return [_profile(f"{slot}-{name}", listed) for name, listed in _listed(slot).items()]

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        constraints = _constraints(pod)
        return any(is_uneven(each, constraints, pod, node, scene) for each in constraints)


# ---- what there is to draw from


def _listed(slot: str) -> dict[str, list[Json]]:
    """Return the constraints of each profile; what only scores is there to be left aside."""
    zone = {"topologyKey": zone_key(slot), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    host = {**zone, "topologyKey": host_key(slot)}
    return {
        "zones": [zone, {**host, "whenUnsatisfiable": "ScheduleAnyway"}],
        "hosts": [{**host, "maxSkew": 2, "matchLabelKeys": [POD_SET]}],
        "both": [zone, {**host, "maxSkew": 2}],
        "least": [{**zone, "minDomains": 2, "nodeTaintsPolicy": "Honor"}],
        "every": [{**zone, "nodeAffinityPolicy": "Ignore"}],
    }


def _profile(name: str, listed: list[Json]) -> Json:
    args = {"defaultingType": "List", "defaultConstraints": listed}
    config = {"name": "PodTopologySpread", "args": args}
    return {"schedulerName": name, "pluginConfig": [config]}


def _service(namespace: str, name: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": namespace}
    headless = {"clusterIP": "None", **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": headless}


def _labels(draw: Draw, chance: float) -> dict[str, str]:
    return {
        **draw.maybe(chance, lambda: {ONE: "yes"}, {}),
        **draw.maybe(chance / 2, lambda: {TWO: "yes"}, {}),
    }


# ---- how it is judged


def _constraints(pod: Json) -> list[Json]:
    """Return what binds a pod of the gang, with the selector that its Services make."""
    slot, _, profile = pod["spec"].get("schedulerName", "").rpartition("-")
    wanted = _wanted(pod["metadata"]["labels"])
    listed = _listed(slot).get(profile, []) if slot else []
    if pod["spec"].get("topologySpreadConstraints") or not wanted:
        return []
    return [
        {**each, "labelSelector": {"matchLabels": wanted}, "matchLabelKeys": []}
        for each in listed
        if each["whenUnsatisfiable"] == "DoNotSchedule"
    ]


def _wanted(labels: Json) -> Json:
    """Return what the Services ask for that select the pod."""
    wanted: Json = {}
    for selector in SELECTORS:
        if all(labels.get(key) == value for key, value in selector.items()):
            wanted |= selector
    return wanted

"""Would kube-scheduler take this pod on that node, worked out the slow and obvious way?

Written from the scheduler's plugins and on plain manifests, sharing no line with the core: one
pod, one node, everything that is bound so far. What refuses is named, so that it can be counted
how often each constraint decided.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.oracle.worlds import Json

Bound = tuple[Json, Json]
"""A pod and the node it is bound to."""

_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


@dataclass(frozen=True)
class Scene:
    """Nodes, the pods bound to them, labels of namespaces, and constraints left aside."""

    nodes: list[Json]
    bound: list[Bound]
    namespaces: dict[str, dict[str, str]]
    ignored: frozenset[str] = frozenset()

    def with_pod(self, pod: Json, node: Json) -> "Scene":
        """Return the scene once the pod is bound."""
        return Scene(self.nodes, [*self.bound, (pod, node)], self.namespaces, self.ignored)

    def accepts(self, pod: Json, node: Json) -> bool:
        """Say whether nothing speaks against the pod on the node."""
        return not any(name not in self.ignored for name in refusals(pod, node, self))


def refusals(pod: Json, node: Json, scene: Scene) -> Iterator[str]:
    """Name the constraints that refuse the pod on the node."""
    here = [other for other, where in scene.bound if where is node]
    if not _fits(pod, node, here):
        yield "resources"
    if not _enters(pod, node):
        yield "taints"
    if not _is_wanted(pod, node):
        yield "node affinity"
    if any(_clash(port, used) for port in _ports(pod) for each in here for used in _ports(each)):
        yield "host ports"

    yield from _company(pod, node, scene)


CONSTRAINTS = ("resources", "taints", "node affinity", "host ports", "affinity", "anti-affinity")


# ---- amounts


def _fits(pod: Json, node: Json, here: Iterable[Json]) -> bool:
    free = {name: _amount(text) for name, text in node["status"]["allocatable"].items()}
    for other in here:
        for name, amount in _requests(other).items():
            free[name] = free.get(name, 0) - amount
    return all(amount <= free.get(name, 0) for name, amount in _requests(pod).items() if amount)


def _requests(pod: Json) -> dict[str, int]:
    spec = pod["spec"]
    inits = spec.get("initContainers", [])
    asked = [_asked(each) for each in (*spec["containers"], *inits)]
    total: dict[str, int] = {"pods": 1}
    for name in {name for each in asked for name in each}:
        steady = sum(_asked(each).get(name, 0) for each in spec["containers"])
        side_cars = peak = 0
        for each in inits:
            amount = _asked(each).get(name, 0)
            peak = max(peak, side_cars + amount)
            side_cars += amount if each.get("restartPolicy") == "Always" else 0
        total[name] = max(steady + side_cars, peak)
    return {**total, **_asked(spec)}


def _asked(holder: Json) -> dict[str, int]:
    asked = holder.get("resources", {}).get("requests", {})
    return {name: _amount(text) for name, text in asked.items()}


def _amount(text: str) -> int:
    unit = text[-2:]
    return int(text[:-2]) * _UNITS[unit] if unit in _UNITS else int(text)


# ---- the node itself


def _enters(pod: Json, node: Json) -> bool:
    spec = node["spec"]
    taints = [each for each in spec.get("taints", []) if each["effect"] != "PreferNoSchedule"]
    if spec.get("unschedulable"):
        taints.append(_UNSCHEDULABLE)
    tolerations = pod["spec"].get("tolerations", [])
    return all(any(_covers(each, taint) for each in tolerations) for taint in taints)


def _covers(toleration: Json, taint: Json) -> bool:
    if toleration.get("effect", taint["effect"]) != taint["effect"]:
        return False
    if toleration.get("key", taint["key"]) != taint["key"]:
        return False
    exists = toleration.get("operator") == "Exists"
    return exists or toleration.get("value", "") == taint.get("value", "")


def _is_wanted(pod: Json, node: Json) -> bool:
    labels = node["metadata"]["labels"]
    selector = pod["spec"].get("nodeSelector", {})
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity")
    if affinity is None:
        return True
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    return any(_term_holds(term, node) for term in terms)


def _term_holds(term: Json, node: Json) -> bool:
    name = {"metadata.name": node["metadata"]["name"]}
    found = [(each, node["metadata"]["labels"]) for each in term.get("matchExpressions", [])]
    found += [(each, name) for each in term.get("matchFields", [])]
    return bool(found) and all(holds(each, labels) for each, labels in found)


def holds(expression: Json, labels: dict[str, str]) -> bool:
    """Say whether labels satisfy one expression of a selector."""
    value, values = labels.get(expression["key"]), expression.get("values", [])
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    raise ValueError(expression)


# ---- ports


def _ports(pod: Json) -> list[tuple[str, str, int]]:
    return [
        (port.get("hostIP", "0.0.0.0"), port.get("protocol", "TCP"), port["hostPort"])
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
        if port.get("hostPort")
    ]


def _clash(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    same_address = one[0] == other[0] or "0.0.0.0" in (one[0], other[0])
    return same_address and one[1:] == other[1:]


# ---- company


def _company(pod: Json, node: Json, scene: Scene) -> Iterator[str]:
    labels = node["metadata"]["labels"]
    near = _terms(pod, "podAffinity")
    company = [(o, w) for o, w in scene.bound if all(_picks(t, pod, o, scene) for t in near)]
    for term in near:
        key = term["topologyKey"]
        if key not in labels:
            yield "affinity"
        elif not any(_shares(key, node, where) for _, where in company):
            known = any(
                t["topologyKey"] in w["metadata"]["labels"] for _, w in company for t in near
            )
            if known or not all(_picks(t, pod, pod, scene) for t in near):
                yield "affinity"
    for other, where in scene.bound:
        terms = [(term, pod, other) for term in _terms(pod, "podAntiAffinity")]
        terms += [(term, other, pod) for term in _terms(other, "podAntiAffinity")]
        for term, owner, picked in terms:
            if _shares(term["topologyKey"], node, where) and _picks(term, owner, picked, scene):
                yield "anti-affinity"


def _terms(pod: Json, kind: str) -> list[Json]:
    terms: list[Json] = (
        pod["spec"]
        .get("affinity", {})
        .get(kind, {})
        .get("requiredDuringSchedulingIgnoredDuringExecution", [])
    )
    return terms


def _shares(key: str, one: Json, other: Json) -> bool:
    value = one["metadata"]["labels"].get(key)
    return value is not None and value == other["metadata"]["labels"].get(key)


def _picks(term: Json, owner: Json, other: Json, scene: Scene) -> bool:
    """Say whether a term of the owner picks the other pod."""
    namespace = other["metadata"]["namespace"]
    elsewhere = term.get("namespaceSelector")
    named = term.get("namespaces", [])
    if not named and elsewhere is None:
        named = [owner["metadata"]["namespace"]]
    reached = namespace in named or (
        elsewhere is not None and _selected(elsewhere, scene.namespaces[namespace])
    )
    selector = term.get("labelSelector")
    return reached and selector is not None and _selected(selector, other["metadata"]["labels"])


def _selected(selector: Json, labels: dict[str, str]) -> bool:
    equal = all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items())
    return equal and all(holds(each, labels) for each in selector.get("matchExpressions", []))


# ---- whole gangs


def possible(scene: Scene, pods: list[Json], tries: int) -> bool | None:
    """Say whether equal pods can be bound one after the other; None where it takes too long."""
    seen: set[tuple[str, ...]] = set()

    def search(now: Scene, left: list[Json], on: tuple[str, ...]) -> bool:
        if not left:
            return True
        if on in seen or len(seen) > tries:
            return False
        seen.add(on)
        return any(
            search(now.with_pod(left[0], node), left[1:], tuple(sorted((*on, _name(node)))))
            for node in now.nodes
            if now.accepts(left[0], node)
        )

    return search(scene, pods, ()) or (None if len(seen) > tries else False)


def _name(node: Json) -> str:
    name: str = node["metadata"]["name"]
    return name

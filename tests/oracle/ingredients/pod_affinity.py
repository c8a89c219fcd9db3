"""Required affinity of pods to others and against them, in both directions."""

from collections.abc import Sequence

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.model import POD_SET, Json, Scene
from tests.oracle.selectors import selected

_AFFINITY, _ANTI_AFFINITY = "podAffinity", "podAntiAffinity"


class PodAffinity(Ingredient):
    """Each term wants a pod in the same domain, or the pod begins a series."""

    name = "pod affinity"
    reach = Reach.EXISTING_PODS
    share = 0.6

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.2):
            _add_terms(draw, pod["spec"], _AFFINITY)

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.35):
            _add_terms(draw, pod["spec"], _AFFINITY)

    def may_sleep(self, pod: Json) -> bool:
        """The queueing hint evaluates a namespaceSelector without the namespace's labels."""
        return not all(
            pod["metadata"]["namespace"] in term.get("namespaces", [])
            or selected(term["namespaceSelector"], {})
            for term in _terms(pod, _AFFINITY)
            if "namespaceSelector" in term
        )

    def is_asked(self, pod: Json, scene: Scene) -> bool:
        return _is_asked(pod, scene)

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        terms = _terms(pod, _AFFINITY)
        labels = node["metadata"]["labels"]
        if not terms:
            return False
        if any(term["topologyKey"] not in labels for term in terms):
            return True
        matching = [(o, w) for o, w in scene.bound if all(_picks(t, pod, o, scene) for t in terms)]
        keys = [term["topologyKey"] for term in terms]
        if all(any(_shares(key, node, where) for _, where in matching) for key in keys):
            return False
        counted = any(key in where["metadata"]["labels"] for _, where in matching for key in keys)
        return counted or not all(_picks(term, pod, pod, scene) for term in terms)


class PodAntiAffinity(Ingredient):
    """The pod's anti-affinity against existing pods, and theirs against it."""

    name = "pod anti-affinity"
    reach = Reach.ROOM
    share = 0.6

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.4):
            _add_terms(draw, pod["spec"], _ANTI_AFFINITY)

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.5):
            _add_terms(draw, pod["spec"], _ANTI_AFFINITY)

    def is_asked(self, pod: Json, scene: Scene) -> bool:
        return _is_asked(pod, scene)

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        for other, where in scene.bound:
            terms = [(term, pod, other) for term in _terms(pod, _ANTI_AFFINITY)]
            terms += [(term, other, pod) for term in _terms(other, _ANTI_AFFINITY)]
            for term, owner, picked in terms:
                near = _shares(term["topologyKey"], node, where)
                if near and _picks(term, owner, picked, scene):
                    return True
        return False


# ---- what is drawn


def _add_terms(draw: Draw, spec: Json, kind: str) -> None:
    terms = [_term(draw) for _ in range(draw.random.choice((1, 1, 1, 2)))]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    spec.setdefault("affinity", {})[kind] = required


def _term(draw: Draw) -> Json:
    a, b = draw.namespaces
    world = {"matchLabels": {"world": draw.slot}}
    one_team = {"matchLabels": {"world": draw.slot, "team": draw.random.choice("ab")}}
    selector = _selector(draw)
    keys = {} if POD_SET in str(selector) else {"matchLabelKeys": [POD_SET]}
    return {
        "topologyKey": draw.random.choice((draw.host, draw.host, draw.zone)),
        "labelSelector": selector,
        **draw.maybe(0.2, lambda: {"namespaces": draw.random.choice(([b], [a, b]))}, {}),
        **draw.maybe(0.2, lambda: {"namespaceSelector": draw.random.choice((world, one_team))}, {}),
        **draw.maybe(0.1, lambda: keys, {}),
    }


def _selector(draw: Draw) -> Json:
    apps = draw.random.sample(("head", "worker", "web"), draw.random.choice((1, 1, 2)))
    operator = draw.random.choice(("In", "In", "NotIn"))
    return draw.random.choice(
        (
            {"matchLabels": {"app": apps[0]}},
            {"matchExpressions": [{"key": "app", "operator": operator, "values": apps}]},
            {"matchExpressions": [{"key": POD_SET, "operator": "Exists"}]},
            {},
        )
    )


# ---- how it is judged


def _is_asked(pod: Json, scene: Scene) -> bool:
    """Say whether the pod has terms, or a bound pod has anti-affinity to it somewhere."""
    return bool(_terms(pod, _AFFINITY) or _terms(pod, _ANTI_AFFINITY)) or any(
        term["topologyKey"] in where["metadata"]["labels"] and _picks(term, other, pod, scene)
        for other, where in scene.bound
        for term in _terms(other, _ANTI_AFFINITY)
    )


def _terms(pod: Json, kind: str) -> list[Json]:
    affinity = pod["spec"].get("affinity", {}).get(kind, {})
    terms: list[Json] = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", [])
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
        elsewhere is not None and selected(elsewhere, scene.namespaces[namespace])
    )
    selector = term.get("labelSelector")
    return reached and selector is not None and selected(selector, other["metadata"]["labels"])

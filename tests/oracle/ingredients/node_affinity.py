"""nodeSelector and required node affinity, with all operators, by label and by name."""

from collections.abc import Sequence

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient
from tests.oracle.model import Json, Scene, name_of
from tests.oracle.selectors import holds


class NodeAffinity(Ingredient):
    """A pod wants all labels of its nodeSelector, and one term of its affinity."""

    name = "node affinity"
    share = 0.7

    def add_to_nodes(self, draw: Draw, nodes: Sequence[Json]) -> None:
        for node in nodes:
            if draw.happens(0.5):
                node["metadata"]["labels"]["tier"] = draw.random.choice(("1", "2", "10"))

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.15):
            pod["spec"]["nodeSelector"]["tier"] = draw.random.choice("12")
        if draw.happens(0.3):
            pod["spec"].setdefault("affinity", {})["nodeAffinity"] = _affinity(draw)

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        labels = node["metadata"]["labels"]
        selector = pod["spec"].get("nodeSelector", {})
        if any(labels.get(key) != value for key, value in selector.items()):
            return True
        affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
        required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
        if required is None:
            return False
        return not any(_term_holds(term, node) for term in required["nodeSelectorTerms"])


def _affinity(draw: Draw) -> Json:
    terms = [_term(draw) for _ in range(draw.random.choice((1, 1, 2)))]
    terms += draw.maybe(0.1, lambda: [{}], [])
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _term(draw: Draw) -> Json:
    first, second = (f"{draw.node_names}{at}" for at in (0, 1))
    operator = draw.random.choice(("In", "NotIn"))
    return draw.random.choice(
        (
            {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
            {"matchExpressions": [{"key": "tier", "operator": "Gt", "values": ["1"]}]},
            {"matchExpressions": [{"key": "tier", "operator": "Lt", "values": ["10"]}]},
            {"matchExpressions": [{"key": draw.zone, "operator": operator, "values": ["x"]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [first]}]},
            {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [second]}]},
        )
    )


def _term_holds(term: Json, node: Json) -> bool:
    name = {"metadata.name": name_of(node)}
    found = [(each, node["metadata"]["labels"]) for each in term.get("matchExpressions", [])]
    found += [(each, name) for each in term.get("matchFields", [])]
    return bool(found) and all(holds(each, labels) for each, labels in found)

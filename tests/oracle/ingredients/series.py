"""Pods with affinity to any pod of their gang, within zones that not all of it may enter.

The first of such a series (first-pod rule) must often be bound before the others: only some orders
of binding succeed.
"""

from collections.abc import Sequence

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.ingredients.pod_affinity import PodAffinity
from tests.oracle.model import POD_SET, Json, Scene


class Series(Ingredient):
    """Affinity to the gang's own pods; `PodAffinity` judges it, and pod sets are held to zones."""

    name = "series"
    reach = Reach.EXISTING_PODS
    share = 0.15

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.6):
            pod["spec"]["nodeSelector"][draw.zone] = draw.random.choice("xy")
        if draw.happens(0.7):
            own = {"matchExpressions": [{"key": POD_SET, "operator": "Exists"}]}
            term = {"topologyKey": draw.random.choice((draw.zone, draw.host)), "labelSelector": own}
            near = pod["spec"].setdefault("affinity", {}).setdefault("podAffinity", {})
            near.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(term)

    def without(self, scene: Scene) -> Scene:
        """Leave all affinity aside."""
        return PodAffinity().without(scene)

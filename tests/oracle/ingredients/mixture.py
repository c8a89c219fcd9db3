"""Pods of one pod set that are not equal: a mutating webhook has changed some."""

from collections.abc import Sequence

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient
from tests.oracle.model import Json


class Mixture(Ingredient):
    """Some pods of the gang ask for another amount than the rest of their pod set."""

    name = "mixed pod sets"
    share = 0.25

    def add_to_gang(self, draw: Draw, pods: Sequence[Json]) -> None:
        for pod in pods:
            if draw.happens(0.3) and "resources" not in pod["spec"]:
                asked = pod["spec"]["containers"][0]["resources"].setdefault("requests", {})
                asked["cpu"] = str(draw.random.randint(0, 4))

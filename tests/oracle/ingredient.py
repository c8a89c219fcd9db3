"""What one constraint brings to the oracle. See the package `tests.oracle.ingredients`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import Enum

from tests.oracle.draw import Draw
from tests.oracle.model import Bound, Json, Scene


class Reach(Enum):
    """What the answer of a constraint depends on; the search through everything rests on it."""

    NODE = "the pod and the node alone"
    ROOM = "also on bound pods, and one more of them never turns a refusal into consent"
    EXISTING_PODS = "also on bound pods, and one more of them may help as well as hurt"


class Ingredient:
    """One constraint: how it comes into a world, and what it refuses there.

    Every method may be left out. What is added is added to the manifests handed in.
    """

    name: str
    """What it is called in the coverage."""
    reach: Reach = Reach.NODE
    hidden_by_pin: bool = False
    """Whether kube-scheduler no longer judges it for a pod that is pinned to one node."""
    permits: bool = False
    """Whether it makes room instead of refusing any."""
    share: float = 1.0
    """In which share of the worlds it takes part at all."""

    def add_to_nodes(self, draw: Draw, nodes: Sequence[Json]) -> None:
        """Add to the nodes, before there are pods."""

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        """Add to a pod that is there before the gang; it is bound to one of the nodes."""

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        """Add to the first pod of a pod set of the gang; the others will be copies of it."""

    def add_to_gang(self, draw: Draw, pods: Sequence[Json]) -> None:
        """Add to the pods of the gang one by one, after they were copied."""

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        """Say whether kube-scheduler would refuse the pod, as it came, on the node now."""
        return False

    def is_asked(self, pod: Json, scene: Scene) -> bool:
        """Say whether kube-scheduler runs the plugin for the pod at all (PreFilter: Skip).

        Where not, nominated pods do not matter to it either.
        """
        return True

    def may_sleep(self, pod: Json) -> bool:
        """Say whether kube-scheduler may let a refused pod lie though it would take it by now."""
        return False

    def without(self, scene: Scene) -> Scene:
        """Return the scene as it would be if the constraint did not exist."""
        return replace(scene, ignored=scene.ignored | {self.name})

    def faults(self, gang: Sequence[Bound], scene: Scene) -> Iterator[str]:
        """Say what is wrong with the gang once it is bound, `gang` in the order of release.

        `scene` is what was there before the gang. Needed only where more is to be said of the
        end than of each step: that `refuses` lets the pods in one after the other, the refused
        ones again once others are bound, is checked for all.
        """
        return iter(())

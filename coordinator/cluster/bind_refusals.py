"""Remembers nodes on which kube-scheduler recently refused a pod though they seemed to have room.

kube-scheduler may know what Muster does not: another extender refuses the node, or a watch of
Muster lags. The refused pod is deleted, and its replacement would get the same node again. So
Muster avoids the node for pods of this shape in this namespace, until the node changes or some time
has passed. A new leader knows no refusals, which costs one more try.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kube.codec.observed_pod import ObservedPod
from scheduling.model.gang import GangKey

MOST = 1_000
"""How many are remembered; the one that would end first makes room for the next."""

TEXT_LIMIT = 600
"""Characters of what a gang says of a refusal; of thousands of nodes kube-scheduler says much."""

Where = tuple[str, str, str]
"""Namespace, shape and node."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Until when (monotonic seconds) a node is avoided, and what to tell the gang's user."""

    until: float
    gang: GangKey
    text: str


@dataclass
class Refusals:
    """All refusals that are remembered."""

    noted: int = 0
    """How often kube-scheduler refused a pod on the node that it was released to."""
    _known: dict[Where, Refused] = field(default_factory=dict)

    def note(self, pod: ObservedPod, until: float) -> str:
        """Avoid the node that a pod was released to; return what is news of it, for its user."""
        assert pod.member is not None
        assert pod.member.shape is not None
        self.noted += 1
        where = pod.namespace, pod.member.shape.key, pod.settled_on
        news = where not in self._known
        said = f"kube-scheduler refuses {pod.name} on {pod.settled_on}, which is avoided now"
        text = f"{said}: {pod.unschedulable}"[:TEXT_LIMIT]
        if news and len(self._known) >= MOST:
            del self._known[min(self._known, key=lambda each: (self._known[each].until, each))]
        self._known[where] = Refused(until, pod.member.gang, text)
        return text if news else ""

    def nodes(self, namespace: str) -> Mapping[str, tuple[str, ...]]:
        """Return by shape the nodes that its pods in a namespace are to avoid, sorted by name."""
        found: dict[str, list[str]] = {}
        for of, shape, node in self._known:
            if of == namespace:
                found.setdefault(shape, []).append(node)
        return {shape: tuple(sorted(nodes)) for shape, nodes in found.items()}

    def said_of(self, gang: GangKey) -> str:
        """Return what a gang's pods were refused with last; empty where they were not."""
        found = [(each.until, each.text) for each in self._known.values() if each.gang == gang]
        return max(found, default=(0.0, ""))[1]

    @property
    def namespaces(self) -> set[str]:
        """The namespaces whose pods were refused."""
        return {namespace for namespace, _, _ in self._known}

    @property
    def nodes_avoided(self) -> int:
        """How many nodes are avoided for pods of some shape."""
        return len({node for _, _, node in self._known})

    @property
    def next_end(self) -> float | None:
        """When the next of them is over."""
        return min((each.until for each in self._known.values()), default=None)

    def expire(self, now: float) -> set[GangKey]:
        """Forget those that are over; return the gangs that were told of them."""
        return self._forget([where for where, each in self._known.items() if each.until <= now])

    def forget_node(self, name: str) -> set[GangKey]:
        """Forget a node that has changed; return the gangs that were told of it."""
        return self._forget([where for where in self._known if where[2] == name])

    def _forget(self, over: list[Where]) -> set[GangKey]:
        return {self._known.pop(where).gang for where in over}

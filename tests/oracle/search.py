"""Finds any way to bind a gang by trying everything, one pod at a time.

It follows kube-scheduler: pods are bound one after the other, each judged by what is bound then,
in whatever order suits. It shares no line with the core.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from tests.oracle.ingredient import Reach
from tests.oracle.ingredients import INGREDIENTS
from tests.oracle.judge import accepts, takes, with_pod
from tests.oracle.model import Bound, Json, Scene

State = tuple[tuple[int, ...], ...]
"""How many pods of each kind are on each node."""


def possible(
    scene: Scene, gang: Sequence[Json], present: frozenset[str], tries: int
) -> bool | None:
    """Say whether the gang can be bound in some order; None where that takes too many tries.

    `present` are the names of the ingredients in the gang's world.
    """
    kinds = _kinds(gang)
    most = [[_most(kind, node, scene) for node in scene.nodes] for kind in kinds]
    if any(sum(row) < kind.count for row, kind in zip(most, kinds, strict=True)):
        return False
    matters = any(
        each.reach is Reach.EXISTING_PODS and each.name in present - scene.ignored
        for each in INGREDIENTS
    )
    return _Search(kinds, most, tries, matters).run(scene)


def safe(scene: Scene, gang: Sequence[Json], tries: int) -> bool | None:
    """Say whether pods can be pinned so that all are bound whichever of them goes first.

    None where that takes too many tries.
    """
    kinds = _kinds(gang)
    most = [[_most(kind, node, scene) for node in scene.nodes] for kind in kinds]
    search = _Search(kinds, most, tries, order_matters=True)
    pinned = _as_pinned(scene)
    found = any(_ends_well(pinned, kinds, each) for each in search.endings(scene))
    return found or (None if len(search.seen) > tries else False)


def holds(scene: Scene, waves: Sequence[Sequence[Bound]]) -> bool:
    """Say whether pods pinned to their nodes are all bound, each wave in whatever order."""
    now = _as_pinned(scene)
    for wave in waves:
        kinds = _kinds([pod for pod, _ in wave])
        if not _ends_well(now, kinds, _ending(kinds, wave, scene.nodes)):
            return False
        now = replace(now, bound=[*now.bound, *wave])
    return True


def _as_pinned(scene: Scene) -> Scene:
    """Leave aside what kube-scheduler does not judge of a pinned pod."""
    hidden = frozenset(each.name for each in INGREDIENTS if each.hidden_by_pin)
    return replace(scene, ignored=scene.ignored | hidden)


def _ending(kinds: Sequence["_Kind"], bound: Sequence[Bound], nodes: Sequence[Json]) -> State:
    """Return how many of each kind are bound on each node."""
    on: State = tuple((0,) * len(nodes) for _ in kinds)
    place = {kind.traits: at for at, kind in enumerate(kinds)}
    for pod, where in bound:
        at = next(at for at, node in enumerate(nodes) if node is where)
        on = _plus(on, place[_traits(pod)], at)
    return on


def _ends_well(scene: Scene, kinds: Sequence["_Kind"], ending: State) -> bool:
    """Say whether every order of binding leads to this ending.

    A refused pod is tried again, unless kube-scheduler may leave it unschedulable.
    """
    known: dict[State, bool] = {}
    asleep = [any(each.may_sleep(kind.pod) for each in INGREDIENTS) for kind in kinds]

    def leads(now: Scene, on: State) -> bool:
        if on not in known:
            left = list(_missing(on, ending))
            steps = [
                (at, node) for at, node in left if accepts(kinds[at].pod, now.nodes[node], now)
            ]
            lost = any(asleep[at] for at, _ in set(left) - set(steps))
            known[on] = not left or (
                bool(steps)
                and not lost
                and all(
                    leads(with_pod(now, kinds[at].pod, now.nodes[node]), _plus(on, at, node))
                    for at, node in steps
                )
            )
        return known[on]

    return leads(scene, tuple((0,) * len(row) for row in ending))


def _missing(on: State, ending: State) -> Iterator[tuple[int, int]]:
    """Give the kinds and nodes that are not there yet as often as in the end."""
    for at, (row, wanted) in enumerate(zip(on, ending, strict=True)):
        for node, (count, most) in enumerate(zip(row, wanted, strict=True)):
            if count < most:
                yield at, node


@dataclass(frozen=True)
class _Kind:
    """Pods that no constraint tells apart."""

    traits: str
    pod: Json
    count: int


def _traits(pod: Json) -> str:
    metadata = pod["metadata"]
    return json.dumps((pod["spec"], metadata["labels"], metadata["namespace"]), sort_keys=True)


def _kinds(gang: Sequence[Json]) -> list[_Kind]:
    alike: dict[str, list[Json]] = {}
    for pod in gang:
        alike.setdefault(_traits(pod), []).append(pod)
    kinds = [_Kind(traits, pods[0], len(pods)) for traits, pods in alike.items()]
    return sorted(kinds, key=lambda kind: -kind.count)


def _most(kind: _Kind, node: Json, scene: Scene) -> int:
    """Return how many pods of a kind a node takes at most, whoever else comes."""
    for count in range(kind.count):
        if not takes(kind.pod, node, scene):
            return count
        scene = with_pod(scene, kind.pod, node)
    return kind.count


@dataclass
class _Search:
    """One search; where the order of binding does not matter only one is tried."""

    kinds: list[_Kind]
    most: list[list[int]]
    tries: int
    order_matters: bool
    seen: set[State] = field(default_factory=set)

    def run(self, scene: Scene) -> bool | None:
        """Say whether there is a way; None where that takes too many tries."""
        found = next(self.endings(scene), None) is not None
        return found or (None if len(self.seen) > self.tries else False)

    def endings(self, scene: Scene) -> Iterator[State]:
        """Yield where the pods can end up, as far as the tries go."""
        return self._from(scene, tuple((0,) * len(scene.nodes) for _ in self.kinds))

    def _from(self, now: Scene, on: State) -> Iterator[State]:
        if on in self.seen or len(self.seen) > self.tries:
            return
        self.seen.add(on)
        if all(sum(row) == kind.count for row, kind in zip(on, self.kinds, strict=True)):
            yield on
        for kind, node in self._ways(on):
            if accepts(self.kinds[kind].pod, now.nodes[node], now):
                then = with_pod(now, self.kinds[kind].pod, now.nodes[node])
                yield from self._from(then, _plus(on, kind, node))

    def _ways(self, on: State) -> Iterator[tuple[int, int]]:
        """Give the kinds and nodes that may come next."""
        left = [at for at, kind in enumerate(self.kinds) if sum(on[at]) < kind.count]
        for kind in left if self.order_matters else left[:1]:
            first = 0 if self.order_matters else _last(on[kind])
            for node in range(first, len(on[kind])):
                if on[kind][node] < self.most[kind][node]:
                    yield kind, node


def _last(row: Sequence[int]) -> int:
    """Return the last node with pods: without an order those before it have been filled."""
    return max((at for at, count in enumerate(row) if count), default=0)


def _plus(on: State, kind: int, node: int) -> State:
    row = (*on[kind][:node], on[kind][node] + 1, *on[kind][node + 1 :])
    return (*on[:kind], row, *on[kind + 1 :])

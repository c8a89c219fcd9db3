"""The oracle's worlds of devices by claim without a control plane: all orders, and none matters.

The allocator is that of the core, which answers as the real one does to its own tables
(`tests/scheduling/devices`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest

from coordinator.cluster.devices import Devices
from scheduling.devices.allocator import allocate
from scheduling.devices.node_index import NodeDevicesIndex
from scheduling.devices.outcome import Allocated
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.in_use import InUse
from scheduling.model.devices.resource_claim import AllocatedDevice
from tests.oracle.devices.device_question import (
    ask_for_devices,
    claims_of,
    extended_claims,
    facts_of,
    tell,
)
from tests.oracle.devices.device_worlds import FOREIGN, device_world, on_the_way
from tests.oracle.model import Json, World, name_of, namespace_labels
from tests.oracle.question import Yes, cache_of

WORLDS, MORE_WORLDS = 120, 2000
ORDERS = 6
STEPS = 100_000
Placed = tuple[Json, str]


def namespaces(world: World) -> list[Json]:
    labels = {name: namespace_labels(world.slot, name) for name in world.namespaces}
    return [{"metadata": {"name": name, "labels": each}} for name, each in labels.items()]


def as_stored(seed: str) -> World:
    """Fill in what the API server would, and make the claims of all pods."""
    drawn = device_world("w0", seed).world
    templates = {}
    for each in drawn.objects:
        each["metadata"]["uid"] = name_of(each)
        if each["kind"] == "ResourceClaimTemplate":
            templates[name_of(each)] = _completed(each["spec"]["spec"])
        if each["kind"] == "ResourceClaim":
            _completed(each["spec"])
    made = [claim for pod in drawn.gang for claim in _claims_made(pod, templates)]
    return replace(drawn, objects=[*drawn.objects, *made])


def _completed(spec: Json) -> Json:
    for request in spec["devices"]["requests"]:
        for asked in request.get("firstAvailable", [request.get("exactly")]):
            asked.setdefault("allocationMode", "ExactCount")
            if asked["allocationMode"] == "ExactCount":
                asked.setdefault("count", 1)
    return spec


def _claims_made(pod: Json, templates: dict[str, Json]) -> Iterator[Json]:
    meta = pod["metadata"]
    uid, statuses = meta.setdefault("uid", name_of(pod)), []
    for each in pod["spec"].get("resourceClaims", []):
        template = each.get("resourceClaimTemplateName")
        if template is not None:
            name = f"{name_of(pod)}-{each['name']}"
            statuses.append({"name": each["name"], "resourceClaimName": name})
            owner = {"kind": "Pod", "name": name_of(pod), "uid": uid, "controller": True}
            about = {"name": name, "namespace": meta["namespace"], "uid": name}
            about["ownerReferences"] = [owner]
            yield {"kind": "ResourceClaim", "metadata": about, "spec": templates[template]}
    pod["status"] = {"resourceClaimStatuses": statuses}


class Allocator:
    """Allocates for one pod after the other, as kube-scheduler does in its cycles."""

    def __init__(self, world: World) -> None:
        self._devices = Devices()
        tell(self._devices, world.objects)
        facts = facts_of(world, self._devices)
        nodes = cache_of(replace(world, gang=[]), namespaces(world)).nodes
        index = NodeDevicesIndex(facts)
        self._nodes = nodes
        self._on = {name: index.of(node) for name, node in nodes.items()}
        self._rules = facts.rules
        self._before = frozenset().union(*facts.taken.values())
        self._given: list[AllocatedDevice] = []
        self._done: dict[tuple[str, str], str] = {}

    def takes_all(self, order: Sequence[Placed]) -> bool:
        """Begin anew, and say whether all pods get their devices in this order."""
        self._given, self._done = [], {}
        return all(self._takes(*each) for each in order)

    def _takes(self, pod: Json, node: str) -> bool:
        """Allocate what the pod claims, but what was allocated; say whether that is possible."""
        claims = [each for each in claims_of(pod, self._devices) if each.allocation is None]
        if any(self._done.get(each.key, node) != node for each in claims):
            return False
        claims = [each for each in claims if each.key not in self._done]
        extended = extended_claims(pod, self._nodes[node], self._devices)
        specs = (*(each.spec for each in claims), *extended)
        pools = self._on[node].pools_of_all
        here = {each.id: each.shared for pool in pools for each in pool.devices}
        in_use = InUse.of(self._before, here).plus(self._given)
        found = allocate(specs, pools, in_use, self._rules, StepBudget(STEPS))
        if not isinstance(found, Allocated):
            return False
        self._given += found.given
        self._done |= dict.fromkeys((each.key for each in claims), node)
        return True


def order_of(answer: Yes, foreign: Sequence[Json], chance: Random) -> list[Placed]:
    """Return all pods in an order that keeps to the waves, those of others anywhere."""
    order = [pod for wave in answer.waves for pod in chance.sample(wave, len(wave))]
    for pod in foreign:
        at = chance.randint(0, len(order))
        order.insert(at, (pod, pod["metadata"]["labels"][FOREIGN]))
    return order


def answer(world: World) -> str:
    found = ask_for_devices(world, namespaces(world))
    return "Admitted" if isinstance(found, Yes) else str(found.reason)


def permuted(world: World, chance: Random) -> World:
    def shuffled(manifests: list[Json]) -> list[Json]:
        return chance.sample(manifests, len(manifests))

    return replace(world, gang=shuffled(world.gang), objects=shuffled(world.objects))


@pytest.mark.parametrize(
    "worlds",
    [
        pytest.param(range(WORLDS), id="few"),
        pytest.param(range(WORLDS, MORE_WORLDS), id="many", marks=pytest.mark.long),
    ],
)
def test_what_is_admitted_gets_its_devices_in_any_order(worlds: range) -> None:
    admitted = waves = 0
    for at in worlds:
        chance, world = Random(at), as_stored(f"orders/{at}")
        found = ask_for_devices(world, namespaces(world))
        if not isinstance(found, Yes):
            continue
        admitted, waves = admitted + 1, waves + (len(found.waves) > 1)
        foreign = on_the_way(found.pods, world)
        allocator = Allocator(world)
        for _ in range(ORDERS):
            order = order_of(found, foreign, chance)
            assert allocator.takes_all(order), (at, order)
    assert admitted > len(worlds) // 6
    assert waves > len(worlds) // 100


def test_the_order_of_objects_and_pods_does_not_matter() -> None:
    for at in range(60):
        world = as_stored(f"orders/{at}")
        assert answer(world) == answer(permuted(world, Random(at))), at

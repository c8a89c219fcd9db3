"""Memory stays flat under pods with invented resource names, once they are gone.

They come a few at a time, as a quota lets them. What the coordinator and the extender keep of them
is traced, which takes in the caches of the codec.
"""

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import msgspec
import pytest

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.placement_faults import overfull
from coordinator.messages.events import Teller
from extender.ledger import Ledger
from extender.snapshot import watched_pod
from kube.codec.observed_pod import observe
from kube.objects import core as core_objects
from kube.objects import names
from scheduling.state.bounded_cache import MIB

PODS, AT_A_TIME, NAMES = 24, 6, 2000
PLACES = ("a", "no-such-node-{}", "")  # the last is gated
NUMBERS = count()
Json = dict[str, Any]


def node(name: str) -> core_objects.Node:
    status = {"allocatable": {"cpu": "64", "pods": "110"}}
    return msgspec.convert({"metadata": {"name": name}, "status": status}, core_objects.Node)


def owner(number: int) -> Json:
    cluster = {"apiVersion": names.RAY_API_VERSION, "kind": "RayCluster", "controller": True}
    return {**cluster, "name": f"r{number}", "uid": f"r{number}"}


def of_invented_resources(number: int) -> Json:
    requests = {f"example.com/{number:04}-{at:04}-{'x' * 40}": "1" for at in range(NAMES)}
    return {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", **requests}}}]}


def of_invented_constraints(number: int) -> Json:
    """What the affinity of a pod may be: some 200 kB."""
    values = [f"{number:04}-{at:04}-{'x' * 40}" for at in range(2 * NAMES)]
    chosen = [{"key": "zone", "operator": "In", "values": values}]
    apart = {"topologyKey": "zone", "labelSelector": {"matchExpressions": chosen}}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = {"nodeSelectorTerms": [{"matchExpressions": chosen}]}
    return {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        "affinity": {"nodeAffinity": {required: terms}, "podAntiAffinity": {required: [apart]}},
    }


def pod(number: int, spec: Json) -> core_objects.Pod:
    on = PLACES[number % len(PLACES)].format(number)
    labels = {names.RAY_NODE_TYPE: "worker"}
    labels |= {f"{number}-{at}": "x" * 63 for at in range(100)}
    made = {
        "metadata": {
            "name": f"p{number}",
            "namespace": f"team-{number}",
            "uid": f"p{number}",
            "labels": labels,
            "annotations": {"a": "x" * 100_000},
            "ownerReferences": [owner(number)],
        },
        "spec": spec | ({"nodeName": on} if on else {"schedulingGates": [{"name": names.GATE}]}),
    }
    return msgspec.json.decode(msgspec.json.encode(made), type=core_objects.Pod)


def new_pods(many: int, spec: Callable[[int], Json]) -> list[core_objects.Pod]:
    """Pods that no test has seen before: some caches are the process's."""
    numbers = list(islice(NUMBERS, many))
    return [pod(number, spec(number)) for number in numbers]


def told_to_the_coordinator(cache: ClusterCache, pods: list[core_objects.Pod]) -> None:
    seen = [observe(each) for each in pods]
    for each in seen:
        cache.put_pod(each, Teller.POD_WATCH)
        assert each.member is not None
        assert each.member.shape is not None
        overfull(each.member.shape, "a", cache.columns(), 0)
        cache.pod_index.counts(each.anti_affinity)
    for each in seen:
        cache.remove_pod(each.namespace, each.name, each.uid, Teller.POD_WATCH)


def told_to_the_extender(ledger: Ledger, pods: list[core_objects.Pod]) -> None:
    for each in pods:
        ledger.put_pod(watched_pod(each))
        ledger.snapshot()
    for each in pods:
        ledger.remove_pod(each.metadata.uid)
    ledger.freed.clear()


@pytest.fixture
def coordinator() -> Callable[[list[core_objects.Pod]], None]:
    cache = ClusterCache()
    cache.put_node(node("a"))
    return lambda pods: told_to_the_coordinator(cache, pods)


@pytest.fixture
def extender() -> Callable[[list[core_objects.Pod]], None]:
    ledger = Ledger()
    ledger.put_node(node("a"))
    return lambda pods: told_to_the_extender(ledger, pods)


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize(
    "spec",
    [pytest.param(of_invented_resources, marks=pytest.mark.long), of_invented_constraints],
)
@pytest.mark.parametrize(
    "program", ["coordinator", pytest.param("extender", marks=pytest.mark.long)]
)
def test_pods_that_are_gone_leave_little(
    request: pytest.FixtureRequest,
    traced: None,
    spec: Callable[[int], Json],
    program: str,
) -> None:
    """Whether they were bound, to nodes that are there or not, or gated."""
    tell = request.getfixturevalue(program)
    tell(new_pods(1, spec))
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(PODS // AT_A_TIME):
        tell(new_pods(AT_A_TIME, spec))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    assert after - before < 6 * MIB

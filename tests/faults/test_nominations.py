"""kube-scheduler itself keeps the room of a gang whose release is held up; no extender is there."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, pod, requests
from tests.faults.calls import is_release
from tests.faults.crew import Crew

NODES, CPUS, PODS = 4, 6, 20
FILLERS = 100
GUARD = {"GUARD": "Nomination"}


def nominated(plot: Plot) -> list[str]:
    """The nodes to which pods of the plot are nominated."""
    fields = (each["status"].get("nominatedNodeName", "") for each in plot.all("Pod"))
    return [field for field in fields if field]


def fillers(plot: Plot) -> Iterator[Json]:
    """Pods of many shapes and of the priority of the gang."""
    shapes: list[Json] = [
        {},
        {"tolerations": [{"operator": "Exists"}]},
        {"nodeSelector": {"kubernetes.io/hostname": plot.node("n-1")}},
        {"affinity": {"nodeAffinity": pinned_to(plot.node("n-2"))}},
    ]
    sizes = ("1", "500m", "3", "6", "100m")
    kinds = itertools.cycle(itertools.product(shapes, sizes))
    for number, (shape, cpu) in enumerate(itertools.islice(kinds, FILLERS)):
        body = pod(f"filler-{number}", **shape)
        body["spec"]["containers"][0]["resources"] = requests(cpu)
        yield body


def pinned_to(node: str) -> Json:
    """What a release adds to a pod."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def are_tried(plot: Plot) -> list[Json]:
    """All fillers, once kube-scheduler has bound or refused each."""
    found = [each for each in plot.all("Pod") if each["metadata"]["name"].startswith("filler-")]
    return found if len(found) == FILLERS and all(map(is_tried, found)) else []


def is_tried(found: Json) -> bool:
    refused = any(c.get("reason") == "Unschedulable" for c in found["status"].get("conditions", ()))
    return refused or "nodeName" in found["spec"]


def millis(found: Json) -> int:
    cpu: str = found["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    return int(cpu.removesuffix("m")) if cpu.endswith("m") else 1000 * int(cpu)


def test_fillers_take_no_reserved_room_though_the_release_is_held_and_its_leader_killed(
    plot: Plot, crew: Crew
) -> None:
    """None of the gang is released; the next leader finds the nominations, and they stand."""
    plot.add_equal_nodes(NODES, CPUS)
    leader = crew.start_leader(GUARD)
    hold = leader.proxy.hold(is_release)
    plot.create(gang("large", group(replicas=PODS - 1, most=PODS)))
    wait_until(lambda: bool(hold.met), "the leader to send the first release")
    plot.wait(lambda: len(nominated(plot)) == PODS, f"{PODS} pods to be nominated")
    reserved = Counter(nominated(plot))
    for each in fillers(plot):
        plot.create(each)
    tried = plot.wait(lambda: are_tried(plot), "all fillers to be bound or refused")
    taken = Counter[str]()
    for each in tried:
        taken[each["spec"].get("nodeName", "")] += millis(each)
    spare = {node: 1000 * (CPUS - count) for node, count in reserved.items()}
    assert all(taken[node] <= room for node, room in spare.items()), (taken, spare)
    assert sum(taken[node] for node in spare) > 0

    leader.process.kill()
    crew.start_leader(GUARD)
    plot.wait_running("large", PODS)
    assert nominated(plot) == []

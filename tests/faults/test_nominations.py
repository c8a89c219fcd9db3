"""kube-scheduler itself keeps the room of a gang whose release is held up; no extender is there."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, pod, requests
from tests.faults.calls import after, is_nomination, is_placement, is_release
from tests.faults.chronicle import Chronicle
from tests.faults.crew import STEADY, Crew
from tests.faults.ledger import problems
from tests.faults.proxied import Hold, Match

NODES, CPUS, PODS = 5, 12, 50
FILLERS = 160
GUARD = {"GUARD": "Nomination", **STEADY}


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


@pytest.mark.long
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
    tried = wait_until(lambda: are_tried(plot), "all fillers to be bound or refused", every=0.5)
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


@pytest.mark.long
def test_a_nominated_start_goes_on_though_each_of_its_leaders_is_killed(
    plot: Plot, crew: Crew, chronicle: Chronicle
) -> None:
    """At the placement, a nomination, the first release and another one.

    What a leader was about to write arrives when the next one is at work.
    """
    plot.add_equal_nodes(2, 3)
    leader = crew.start_leader(GUARD)
    hold = leader.proxy.hold(is_placement)
    plot.create(gang("killed", group(replicas=4)))
    wait_until(lambda: bool(hold.met), "the first leader to write the placement")
    for kind, passed in ((is_nomination, 2), (is_release, 0), (is_release, 2)):
        leader.process.kill()
        late, held = leader.proxy, hold
        leader, hold = crew.start_held_leader(held_from(kind, passed), GUARD)
        late.lift(held)
        wait_until(partial(sends, hold, kind), "the next leader to send what it is killed at")
    leader.process.kill()
    crew.start_leader(GUARD)
    plot.wait_running("killed", 5)
    assert nominated(plot) == []
    assert problems(chronicle.ledger, {plot.node(f"n-{at}"): 3 for at in range(2)}) == []


def held_from(kind: Match, passed: int) -> Match:
    """Hold what follows the first ones of a kind, and releases unless they are meant themselves."""
    later = after(passed, kind)
    return lambda call: later(call) or (is_release(call) and kind is not is_release)


def sends(hold: Hold, kind: Match) -> bool:
    return any(kind(each.call) for each in hold.met)

"""Gangs whose replicas must each be inside one domain."""

import pytest

from scheduling.cycle import Settings, run_cycle
from scheduling.model.constraints import PodTerm
from scheduling.model.gang import Group, Member, Occupied, PendingGang, Topology
from scheduling.model.node import Node
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from scheduling.state.pod_index import ExistingPods, PodIndex
from tests.builders import GPU, columns, gang, group, node, require, shape
from tests.scheduling.admission.test_gang_topology import (
    HEAD,
    RACK,
    SETS,
    WORKER,
    ZONE,
    refusal,
    verdict,
    where,
    zoned,
)


def replicas(count: int, hosts: int = 2, *, first: int = 0) -> list[Group]:
    return [group("workers", hosts, WORKER, replica=f"r{at}") for at in range(first, first + count)]


def by_replica(found: Verdict) -> dict[str, dict[str, int]]:
    assert isinstance(found, Admitted), found
    mine = [each for each in found.placement.assignments if each.replica]
    return {each.replica: dict(each.nodes) for each in mine}


RACKED = Topology(SETS, replica=RACK)


def racked(rack: str, *gpus: int, cpu: int = 8) -> list[Node]:
    labels = {RACK: rack, ZONE: rack[0]}
    return [node(f"{rack}-{at}", gpu=gpu, cpu=cpu, labels=labels) for at, gpu in enumerate(gpus)]


def test_each_replica_goes_to_one_rack() -> None:
    nodes = [*racked("a", 8, 8, 8), *racked("b", 8, 8, 8)]
    found = by_replica(verdict(gang("a", *replicas(2)), nodes, RACKED))
    assert {each: {name[0] for name in on} for each, on in found.items()} == {
        "r0": {"a"},
        "r1": {"b"},
    }


def test_pods_that_fit_but_not_as_replicas_are_refused_in_numbers() -> None:
    nodes = [*racked("a", 8, 8, 8), *racked("b", 8)]
    found = refusal(verdict(gang("a", *replicas(2)), nodes, RACKED))
    assert found.reason == Reason.INSUFFICIENT_RESOURCES
    assert found.message == (
        "1 of 2 replicas of workers fit: each needs 2 pods inside one rack; "
        "the next finds room for 1 in a"
    )
    assert [(each.fit, each.wanted) for each in found.pod_sets] == [(2, 4)]


def test_pods_that_do_not_fit_at_all_are_refused_as_ever() -> None:
    nodes, busy = racked("a", 8, 8, 8, 8), {"a-3": {GPU: 8}}
    found = refusal(verdict(gang("a", *replicas(2)), nodes, RACKED, used=busy))
    assert found.message.startswith("3 of 4 workers fit: each needs 8 nvidia.com/gpu")


@pytest.mark.parametrize("cpu", [1, 2])
def test_the_head_goes_where_it_costs_no_replica(cpu: int) -> None:
    """In rack a it would displace a worker that rack b cannot take in."""
    worker = shape(cpu=2, gpu=8)
    nodes = [*racked("a", 8, 8, cpu=2), *racked("b", 8, 8, 8, cpu=2)]
    groups = [group("workers", 2, worker, replica=f"r{at}") for at in range(2)]
    asked = gang("a", group("headgroup", 1, shape(cpu=cpu)), *groups)
    found = verdict(asked, nodes, RACKED)
    assert {name[0] for name in where(found, "headgroup")} == {"b"}
    crowded = [*racked("a", 8, 8, cpu=2), *racked("b", 8, 8, cpu=2)]
    assert refusal(verdict(asked, crowded, RACKED)).message == (
        "1 of 2 replicas of workers fit beside headgroup: each needs 2 pods inside one rack; the "
        "next finds room for 1 in a"
    )
    assert isinstance(verdict(gang("a", *asked.minimum[:2]), crowded, RACKED), Admitted)


def test_the_rack_that_the_head_needs_is_left_out_also_among_many() -> None:
    """It is neither the first nor the last of 60, and only one rack can be spared."""
    worker = shape(cpu=1, gpu=8)
    nodes = [
        each for at in range(60) for each in racked(f"r{at:02}", 8, 8, cpu=4 * (at == 30) or 1)
    ]
    groups = [group("workers", 2, worker, replica=f"w{at:02}") for at in range(59)]
    found = verdict(gang("a", group("headgroup", 1, shape(cpu=4)), *groups), nodes, RACKED)
    assert {name[:3] for name in where(found, "headgroup")} == {"r30"}
    assert "r30" not in {name[:3] for name in where(found)}
    one_more = [*groups, group("workers", 2, worker, replica="w59")]
    crowded = refusal(
        verdict(gang("a", group("headgroup", 1, shape(cpu=4)), *one_more), nodes, RACKED)
    )
    assert crowded.reason == Reason.INSUFFICIENT_RESOURCES


def test_surplus_replicas_go_to_one_rack_each_or_wait() -> None:
    nodes = [*racked("a", 8, 8, 8), *racked("b", 8, 8, 8)]
    units = tuple((each,) for each in replicas(3, first=1))
    found = verdict(gang("a", *replicas(1), surplus=units), nodes, RACKED)
    assert isinstance(found, Admitted)
    assert found.units == (0,)
    assert {each: {name[0] for name in on} for each, on in by_replica(found).items()} == {
        "r0": {"a"},
        "r1": {"b"},
    }


def test_a_surplus_of_other_pods_than_the_minimum_goes_to_one_rack_too() -> None:
    """The minimum is one pod beside replicas of one kind, which is decided by a shorter way."""
    nodes = [*zoned("a", 8, 8, rack="1"), *zoned("b", 4, 4, rack="2")]
    other = (group("workers", 2, shape(gpu=4), replica="s0"),)
    minimum = (group("headgroup", 1, HEAD), *replicas(1))
    found = verdict(gang("a", *minimum, surplus=(other,)), nodes, RACKED)
    assert by_replica(found)["s0"] == {"b2-0": 1, "b2-1": 1}


def test_a_replica_of_which_a_part_stands_is_completed_where_it_is() -> None:
    occupied = (Occupied("workers", "r0", "b-0"),)
    nodes = [*racked("a", 8), *racked("b", 0, 8, 8)]
    topology = Topology(SETS, replica=RACK, occupied=occupied)
    half = gang("a", group("workers", 1, WORKER, replica="r0"))
    assert by_replica(verdict(half, nodes, topology)) == {"r0": {"b-1": 1}}
    assert isinstance(verdict(half, [*racked("a", 8), *racked("b", 0)], topology), Refusal)


def test_a_block_for_all_and_a_rack_for_each() -> None:
    """Zone a has the pods but in odd racks; zone b has two even ones."""
    nodes = [*racked("a1", 8), *racked("a2", 8, 8, 8), *racked("b1", 8, 8), *racked("b2", 8, 8, 8)]
    topology = Topology(SETS, required=ZONE, replica=RACK)
    found = by_replica(verdict(gang("a", *replicas(2)), nodes, topology))
    assert {each: {name[:2] for name in on} for each, on in found.items()} == {
        "r0": {"b1"},
        "r1": {"b2"},
    }
    text = refusal(verdict(gang("a", *replicas(3)), nodes, topology)).message
    assert text.startswith(f"no single {ZONE} holds the workers; b comes closest: ")


def test_two_groups_of_replicas_share_racks_as_they_can() -> None:
    """Large replicas fit in one rack only; small ones must leave it to them."""
    large = [group("large", 2, shape(gpu=4), replica="l0")]
    small = [group("small", 2, shape(gpu=3), replica=f"s{at}") for at in range(2)]
    nodes = [*racked("a", 4, 4), *racked("b", 3, 3), *racked("c", 3, 3)]
    topology = Topology(("large", "small"), replica=RACK)
    found = by_replica(verdict(gang("a", *large, *small), nodes, topology))
    assert {each: {name[0] for name in on} for each, on in found.items()} == {
        "l0": {"a"},
        "s0": {"b"},
        "s1": {"c"},
    }


def test_many_racks_and_little_time_are_undecided() -> None:
    large = [group("large", 2, shape(gpu=4), replica=f"l{at}") for at in range(8)]
    small = [group("small", 2, shape(gpu=3), replica=f"s{at}") for at in range(8)]
    nodes = [each for at in range(9) for each in racked(f"r{at}", 4, 4, 3)]
    topology = Topology(("large", "small"), replica=RACK)
    found = refusal(
        verdict(gang("a", *large, *small), nodes, topology, Settings(search_steps=10_000))
    )
    assert found.reason == Reason.UNDECIDED


def test_inter_pod_constraints_of_replicas_hold_as_those_of_other_pods() -> None:
    """One pod per node: a rack of two nodes holds one replica, though it has room for more."""
    apart = PodTerm("host", (require("app", "In", "w"),), ("team",))
    worker = shape(gpu=1, anti_affinity=[apart])
    nodes = [
        node(f"{rack}{at}", gpu=8, labels={RACK: rack, "host": f"{rack}{at}"})
        for rack in "ab"
        for at in range(2)
    ]
    groups = tuple(group("workers", 2, worker, replica=f"r{at}") for at in range(2))
    members = tuple(
        Member("workers", worker, (("app", "w"),), replica=f"r{at // 2}") for at in range(4)
    )
    asked = PendingGang(gang("a").key, 0, 0.0, groups, (), members, topology=RACKED)
    [decision] = run_cycle([asked], columns(*nodes), None, ExistingPods(PodIndex()))
    assert by_replica(decision.verdict) == {
        "r0": {"a0": 1, "a1": 1},
        "r1": {"b0": 1, "b1": 1},
    }

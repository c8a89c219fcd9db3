"""Made-up amounts for host ports against the rule of kube-scheduler."""

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scheduling.cycle import run_cycle
from scheduling.model.constraints import PodTerm
from scheduling.model.gang import Member, PendingGang
from scheduling.model.shape.host_ports import HostPort, port_amounts
from scheduling.model.verdict import Admitted
from scheduling.placement.independent import count_fit
from tests.builders import columns, gang, group, node, require, shape
from tests.examples import examples

PORTS = st.lists(
    st.tuples(
        st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::"]),
        st.sampled_from(["", "TCP", "UDP"]),
        st.sampled_from([80, 81]),
    ),
    max_size=4,
)


def clash(one: HostPort, other: HostPort) -> bool:
    """Say whether two ports get in each other's way, word by word."""
    addresses = {one[0] or "0.0.0.0", other[0] or "0.0.0.0"}
    same = (one[1] or "TCP", one[2]) == (other[1] or "TCP", other[2])
    return same and (len(addresses) == 1 or "0.0.0.0" in addresses)


@given(st.lists(PORTS, max_size=4), PORTS)
def test_a_pod_fits_where_none_of_its_ports_is_taken(
    offered: list[list[HostPort]], wanted: list[HostPort]
) -> None:
    """Whatever pods are on the node, as long as their ports do not conflict."""
    standing: list[list[HostPort]] = []
    for each in offered:
        if not any(clash(a, b) for a in each for other in standing for b in other):
            standing.append(each)
    used: dict[str, int] = {}
    for each in standing:
        for name, amount in port_amounts(each).items():
            used[name] = used.get(name, 0) + amount
    asking = shape(ports=wanted)
    [fitting] = count_fit(asking, columns(node("n"), used={"n": used}))
    taken = any(clash(a, b) for a in wanted for other in standing for b in other)
    assert bool(fitting) is not taken


PODS = st.tuples(PORTS, st.integers(0, 2), st.integers(1, 2))
"""The ports of a pod set, the cpu of each pod, and how many there are."""
GANGS = st.lists(PODS, min_size=1, max_size=3)
STANDING = st.lists(st.tuples(st.integers(0, 2), PORTS), max_size=3)
CPUS = 3
Bound = list[tuple[int, list[HostPort], int]]


def accepted(at: int, ports: list[HostPort], cpu: int, bound: Bound) -> bool:
    """Say whether a node takes a pod beside those that are bound there, word by word."""
    here = [(other, asked) for node, other, asked in bound if node == at]
    taken = any(clash(a, b) for a in ports for other, _ in here for b in other)
    return not taken and cpu + sum(asked for _, asked in here) <= CPUS


def possible(pods: list[tuple[list[HostPort], int]], nodes: int, bound: Bound) -> bool:
    """Say whether all pods can be bound, by trying every node for every pod."""
    if not pods:
        return True
    (ports, cpu), *others = pods
    return any(
        possible(others, nodes, [*bound, (at, ports, cpu)])
        for at in range(nodes)
        if accepted(at, ports, cpu, bound)
    )


@examples(300)
@given(st.integers(1, 3), STANDING, st.lists(GANGS, min_size=1, max_size=2), st.booleans())
def test_gangs_with_ports_are_decided_as_by_trying_everything(
    nodes: int,
    offered: list[tuple[int, list[HostPort]]],
    gangs: list[list[tuple[list[HostPort], int, int]]],
    apart: bool,
) -> None:
    """One after the other in a cycle, whether pods are searched for together or one by one."""
    bound: Bound = []
    for at, ports in offered:
        if at < nodes and accepted(at, ports, 0, bound):
            bound.append((at, ports, 0))
    used: dict[str, dict[str, int]] = {f"n{at}": {} for at in range(nodes)}
    for at, ports, _ in bound:
        for name, amount in port_amounts(ports).items():
            used[f"n{at}"][name] = used[f"n{at}"].get(name, 0) + amount
    nowhere = [PodTerm("no-node-has-it", (require("app", "Exists"),), ("team",))]
    asked = [
        gang(
            f"g{number}",
            *(
                group(
                    f"s{at}",
                    count,
                    shape(cpu=cpu, ports=ports, anti_affinity=nowhere if apart else ()),
                )
                for at, (ports, cpu, count) in enumerate(sets)
            ),
        )
        for number, sets in enumerate(gangs)
    ]
    made = [replace(each, members=tuple(members(each))) for each in asked]
    there = [node(f"n{at}", cpu=CPUS, pods=99) for at in range(nodes)]
    verdicts = [each.verdict for each in run_cycle(made, columns(*there, used=used))]
    for sets, verdict in zip(gangs, verdicts, strict=True):
        pods = [(ports, cpu) for ports, cpu, count in sets for _ in range(count)]
        assert isinstance(verdict, Admitted) is possible(pods, nodes, bound)
        if isinstance(verdict, Admitted):
            for each in verdict.placement.assignments:
                ports, cpu, _ = sets[int(each.pod_set[1:])]
                for at in (int(name[1:]) for name, count in each.nodes for _ in range(count)):
                    assert accepted(at, ports, cpu, bound)
                    bound.append((at, ports, cpu))


def members(of: PendingGang) -> Iterator[Member]:
    for each in of.minimum:
        for _ in range(each.count):
            yield Member(each.pod_set, each.shape, (("app", each.pod_set),))

"""Gangs whose pods claim devices, decided by whole cycles, against all orders on small worlds."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain, permutations, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scheduling.devices.allocator import allocate
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.node_index import NodeDevicesIndex
from scheduling.devices.outcome import Allocated
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.resource_claim import ClaimSpec
from scheduling.model.devices.resource_slice import Device
from scheduling.model.gang import PendingGang
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from tests.builders import columns, gang, group, node, shape
from tests.scheduling.devices.builders import RULES, claim, device, every, exactly
from tests.scheduling.test_cycle_devices import (
    CPU,
    ONE,
    SPECS,
    X,
    Y,
    claiming,
    facts,
    gpus,
    nodes_of,
    verdicts,
    workers,
)

NODES = ("a", "b")
ONLY_X = claim(exactly("type=X"))
EITHER = claim((exactly("type=X", name="x"), exactly("type=Y", name="y")))
ALL = claim(every())
ALL_X = claim(every("type=X"))
Devices = dict[str, list[Device]]
OnNodes = tuple[NodeDevices, ...]
Pod = tuple[str, str]
"""The pod set and the node."""


@st.composite
def devices_of_nodes(draw: st.DrawFn) -> Devices:
    kinds = st.tuples(st.sampled_from("XY"), st.sampled_from("01"), st.integers(0, 5))
    return {
        name: [
            device(f"d{at}", tainted=luck == 0, type=kind, numa=numa)
            for at, (kind, numa, luck) in enumerate(draw(st.lists(kinds, max_size=4)))
        ]
        for name in NODES
    }


specs = st.sampled_from([*SPECS, ALL, ALL_X])
groups = st.lists(st.tuples(specs, st.integers(1, 2)), min_size=1, max_size=2)
rooms = st.tuples(*(st.integers(0, 4) for _ in NODES))


@given(devices_of_nodes(), groups, rooms)
@example({"a": [X, Y], "b": []}, [(EITHER, 1), (ONLY_X, 1)], (3, 0))
@example({"a": [X, Y], "b": [X]}, [(EITHER, 2), (ONLY_X, 1)], (3, 1))
def test_yes_holds_in_all_orders_of_its_waves_and_no_in_none_at_all(
    devices: Devices, wanted: list[tuple[ClaimSpec, int]], cpus: tuple[int, ...]
) -> None:
    """Each node has CPU for so many pods, a head without claims included."""
    parts = [group(f"w{at}", n, claiming(spec)) for at, (spec, n) in enumerate(wanted)]
    one = gang("g", group("head", 1, CPU), *parts)
    world = columns(*(node(name, cpu=cpu) for name, cpu in zip(NODES, cpus, strict=True)))
    known = facts(devices)
    verdict = verdicts(world, known, one)["g"]
    index = NodeDevicesIndex(known)
    there = tuple(index.of(node(name)) for name in NODES)
    claims = {each.pod_set: each.shape.restrictions.claims for each in one.groups()}
    if isinstance(verdict, Admitted):
        used = {name: sum(on.get(name, 0) for on in nodes_of(verdict).values()) for name in NODES}
        assert all(used[name] <= cpu for name, cpu in zip(NODES, cpus, strict=True))
        for order in orders(verdict):
            assert all_allocated(order, there, claims), order
    elif verdict.reason is not Reason.UNDECIDED:
        counts = tuple((each.shape.restrictions.claims, each.count) for each in one.groups())
        assert not is_possible(counts, there, cpus), verdict.message


def orders(verdict: Admitted) -> Iterator[tuple[Pod, ...]]:
    """All orders of the pods in which no wave comes before an earlier one."""
    waves: dict[int, list[Pod]] = {}
    for each in verdict.placement.assignments:
        for name, count in each.nodes:
            waves.setdefault(each.wave, []).extend([(each.pod_set, name)] * count)
    in_waves = (set(permutations(waves[wave])) for wave in sorted(waves))
    for order in product(*in_waves):
        yield tuple(chain.from_iterable(order))


def all_allocated(
    order: tuple[Pod, ...], there: OnNodes, claims: Mapping[str, tuple[ClaimSpec, ...]]
) -> bool:
    on = dict(zip(NODES, there, strict=True))
    for pod_set, name in order:
        found = after(on[name], claims[pod_set])
        if found is None:
            return False
        on[name] = found
    return True


@cache
def after(devices: NodeDevices, claims: tuple[ClaimSpec, ...]) -> NodeDevices | None:
    """The devices once one more pod has come; None where it is refused."""
    given = allocate(claims, devices.pools, devices.in_use, RULES, StepBudget(10_000))
    if not isinstance(given, Allocated):
        return None
    return NodeDevices(devices.pools, devices.in_use.plus(given.given))


def is_possible(
    counts: tuple[tuple[tuple[ClaimSpec, ...], int], ...], there: OnNodes, cpus: tuple[int, ...]
) -> bool:
    """Whether any order of the pods on any nodes gives all of them their devices."""
    if not any(count for _, count in counts):
        return True
    for at, (claims, count) in enumerate(counts):
        for to in range(len(there)) if count else ():
            found = after(there[to], claims) if cpus[to] else None
            if found is not None and is_possible(
                (*counts[:at], (claims, count - 1), *counts[at + 1 :]),
                (*there[:to], found, *there[to + 1 :]),
                (*cpus[:to], cpus[to] - 1, *cpus[to + 1 :]),
            ):
                return True
    return False


# ---- where counting devices says something else


def test_pairs_of_one_numa_node_are_not_made_of_two() -> None:
    """Three devices of each NUMA node are six, and two pairs."""
    pair = claim(exactly(name="a"), exactly(name="b"), match="numa")
    known = facts({"a": [device(f"d{at}", numa=str(at % 2)) for at in range(6)]})
    for count, answer in ((2, Admitted), (3, Refusal)):
        one = gang("g", group("w", count, claiming(pair)))
        assert isinstance(verdicts(columns(node("a")), known, one)["g"], answer)


def test_all_devices_with_a_tainted_one_among_them_are_none() -> None:
    known = facts({"a": [device("d0"), device("d1", tainted=True)]})
    world = columns(node("a"))
    assert isinstance(verdicts(world, known, gang("g", group("w", 1, claiming(ALL))))["g"], Refusal)
    assert isinstance(
        verdicts(world, known, gang("g", group("w", 1, claiming(ONE))))["g"], Admitted
    )


@pytest.mark.parametrize("types", ["XY", "YX"])
def test_a_node_where_a_foreign_pod_may_take_the_very_device_is_not_used(types: str) -> None:
    """A pod that takes any device is on its way to node a, and may come first or last."""
    any_of_a = {"a": (((ONE,), 1),)}
    devices = {"a": [device(f"d{at}", type=kind) for at, kind in enumerate(types)]}
    one = gang("g", group("w", 1, claiming(claim(exactly("type=X")))))
    world = columns(node("a"), node("b"))
    found = verdicts(world, facts(devices, pending=any_of_a), one)["g"]
    assert isinstance(found, Refusal)
    assert found.reason is Reason.UNDECIDED
    elsewhere = {**devices, "b": [device("d0", type="X")]}
    found = verdicts(world, facts(elsewhere, pending=any_of_a), one)["g"]
    assert nodes_of(found) == {"w": {"b": 1}}


# ---- beside gangs without claims


def _plain(name: str, pods: int, created: float) -> PendingGang:
    return gang(name, group("w", pods, CPU), created=created)


def _claiming(name: str, pods: int, created: float) -> PendingGang:
    return gang(name, group("w", pods, claiming(ONE)), created=created)


@pytest.mark.parametrize(
    ("make", "placed"),
    [
        ((_plain, _claiming, _claiming), (True, True, False)),
        ((_claiming, _plain, _claiming), (True, True, False)),
        ((_claiming, _claiming, _plain), (True, True, False)),
    ],
)
def test_gangs_with_and_without_claims_take_the_same_room(
    make: tuple[Callable[[str, int, float], PendingGang], ...], placed: tuple[bool, ...]
) -> None:
    """There is CPU for four pods, and there are devices for more."""
    gangs = [each(f"g{at}", 2, float(at)) for at, each in enumerate(make)]
    found = verdicts(columns(node("a", cpu=4)), facts({"a": gpus(8)}), *gangs)
    assert tuple(isinstance(found[each.key.name], Admitted) for each in gangs) == placed


def test_a_gang_without_claims_is_not_kept_out_by_one_that_lacks_devices() -> None:
    found = verdicts(
        columns(node("a", cpu=4)),
        facts({"a": gpus(1)}),
        workers("large", 3, claiming(ONE)),
        _plain("small", 2, 1.0),
    )
    assert isinstance(found["large"], Refusal)
    assert isinstance(found["small"], Admitted)


def test_pods_that_claim_devices_need_their_other_requests_beside_them() -> None:
    large = claiming(ONE, of=shape(cpu=3))
    known = facts({"a": gpus(4), "b": gpus(4)})
    world = columns(node("a", cpu=7), node("b", cpu=4))
    found = verdicts(world, known, gang("g", group("w", 3, large), group("x", 2, CPU)))["g"]
    assert nodes_of(found)["w"] == {"a": 2, "b": 1}
    refused: Verdict = verdicts(world, known, gang("g", group("w", 4, large)))["g"]
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.NEVER_FITS

"""The benchmark of devices by claim, on a small world."""

import pytest

from benchmarks.devices import (
    DEVICES,
    HALVES,
    WHOLE,
    Offer,
    Took,
    World,
    measured,
    memory_mb,
    rows,
    rows_of_partitions,
)
from benchmarks.measure import Outcome
from benchmarks.report import outcome_lines


@pytest.mark.parametrize("offer", [WHOLE, HALVES], ids=["whole", "halves"])
@pytest.mark.parametrize("by_claim", [True, False])
def test_both_sides_admit_the_same_gangs(by_claim: bool, offer: Offer) -> None:
    """All nodes have 64 devices: the first three gangs take 1, 38 and 11 of them."""
    world = World(by_claim=by_claim, nodes=64 // offer.number, offer=offer)
    gangs = [world.gang(at) for at in range(4)]
    assert [each.minimum[1].count for each in gangs] == [1, 38, 11, 48]
    admitted = world.cycle(gangs)
    assert set(admitted) == {each.key for each in gangs[:3]}
    world.bind(admitted)
    assert not world.cycle(gangs[3:])
    eleven = world.gang(66)
    assert 11 < 8 * DEVICES - 1 - 38 - 11 < 48
    assert eleven.minimum[1].count == 11
    assert set(world.cycle([eleven])) == {eleven.key}


def test_a_run_measures_cycles_and_memory() -> None:
    took = measured(by_claim=True, nodes=20, gangs=3)
    assert min(took.first, took.after, memory_mb(by_claim=True, nodes=20, gangs=3)) > 0


def test_aims_are_ratios_and_memory_beyond_the_floor() -> None:
    good = rows([Took(10, 10)], [Took(15, 20)], 250)
    assert [row.met for row in good] == [True, True, True]
    parts = rows_of_partitions([Took(10, 10)], [Took(20, 50)], 250)
    assert [row.met for row in parts] == [True, False, True]
    late = rows([Took(10, 10)], [Took(16, 21)], 251)
    assert [row.met for row in late] == [False, False, False]
    assert "extended resource" in "".join(outcome_lines("devices", "how long?", Outcome(late)))

"""Release waves of pods whose affinity lets only some orders of binding succeed."""

from collections.abc import Mapping

import numpy as np
import pytest

from scheduling.filters.gang_affinity import RequiredAffinity
from scheduling.placement.release_waves import MOST_STEPS, MOST_WAVES, plan_release_waves
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import columns, node

ZONES = columns(*(node(f"n{at}", labels={"zone": f"z{at}", "host": f"n{at}"}) for at in range(12)))


def affinity(
    unit: int, *partners: int, key: str = "zone", is_not_requeued: bool = False
) -> RequiredAffinity:
    return RequiredAffinity(unit, (key,), (frozenset(),), frozenset(partners), is_not_requeued)


def plan(
    pods: Mapping[tuple[int, int], int], *near: RequiredAffinity, on: NodeSnapshot = ZONES
) -> dict[tuple[int, int], int] | None:
    """Return the wave of each cell (unit, node); None where there is no plan."""
    placed = np.zeros((1 + max(unit for unit, _ in pods), len(on.names)), dtype=np.int64)
    for cell, count in pods.items():
        placed[cell] = count
    found = plan_release_waves(placed, near, on.traits)
    return {cell: int(found.of[cell]) for cell in pods} if found.count else None


def test_pods_without_affinity_are_released_at_once() -> None:
    assert plan({(0, 0): 3, (1, 5): 2}) == {(0, 0): 0, (1, 5): 0}


def test_without_pods_there_is_nothing_to_wait_for() -> None:
    nothing = np.zeros((1, 12), dtype=np.int64)
    assert plan_release_waves(nothing, [affinity(0, 0)], ZONES.traits).count == 1
    assert plan_release_waves(nothing[:, :0], [affinity(0, 0)], columns().traits).count == 1


def test_pods_in_one_domain_need_one_wave() -> None:
    """Whichever is bound first is the first pod, and partner of the others."""
    assert plan({(0, 0): 3, (1, 0): 2}, affinity(0, 0, 1), affinity(1, 0, 1)) == {
        (0, 0): 0,
        (1, 0): 0,
    }


def test_a_first_pod_comes_before_pods_that_would_bar_it() -> None:
    assert plan({(0, 0): 1, (1, 1): 1}, affinity(1, 0, 1)) == {(1, 1): 0, (0, 0): 1}


def test_pods_come_with_the_wave_of_their_partners() -> None:
    """In a second domain the unit of the first pod has a partner only in the later wave."""
    assert plan({(1, 1): 2, (0, 0): 1, (1, 0): 1}, affinity(1, 0, 1)) == {
        (1, 1): 0,
        (0, 0): 1,
        (1, 0): 1,
    }


def test_pods_that_bar_no_first_pod_do_not_wait() -> None:
    """No affinity counts the third unit."""
    assert plan({(0, 0): 1, (1, 1): 1, (2, 2): 4}, affinity(1, 0, 1))[2, 2] == 0  # type: ignore[index]


def test_first_pods_that_bar_each_other_have_a_wave_each() -> None:
    """The one that the most others would bar comes first; two that bar each other have no order."""
    near = affinity(0, 0), affinity(1, 0, 1), affinity(2, 0, 1, 2)
    assert plan({(0, 0): 1, (1, 1): 1, (2, 2): 1}, *near) == {(2, 2): 0, (1, 1): 1, (0, 0): 2}
    assert plan({(0, 0): 1, (1, 1): 1}, affinity(0, 0, 1), affinity(1, 0, 1)) is None


def test_of_two_choices_of_first_pods_the_one_with_fewer_waves_is_taken() -> None:
    """Were the pod of unit 0 the first, that of unit 2 would have to wait for it."""
    near = affinity(0, 0, 1, 2), affinity(1, 1)
    assert plan({(0, 0): 1, (1, 0): 1, (2, 1): 1}, *near) == {(0, 0): 0, (1, 0): 0, (2, 1): 0}


def test_no_pod_is_the_first_on_a_node_without_the_label() -> None:
    assert plan({(0, 0): 1}, affinity(0, 0), on=columns(node("n0"))) is None


def test_first_pods_that_are_independent_share_a_wave() -> None:
    assert plan({(0, 0): 1, (1, 1): 1, (2, 2): 1}, affinity(0, 0, 2), affinity(1, 1, 2)) == {
        (0, 0): 0,
        (1, 1): 0,
        (2, 2): 1,
    }


def test_pods_that_are_not_requeued_come_after_their_partners() -> None:
    """Each needs the one before it, and none is tried again once refused."""
    near = [affinity(unit, unit - 1, is_not_requeued=True) for unit in (1, 2)]
    assert plan(dict.fromkeys(((0, 0), (1, 0), (2, 0)), 1), *near) == {
        (0, 0): 0,
        (1, 0): 1,
        (2, 0): 2,
    }


@pytest.mark.parametrize("more", [0, 1])
def test_no_more_waves_than_can_be_waited_for(more: int) -> None:
    units = MOST_WAVES + more
    near = [affinity(unit, unit - 1, is_not_requeued=True) for unit in range(1, units)]
    found = plan(dict.fromkeys(((unit, 0) for unit in range(units)), 1), *near)
    assert (found is None) is bool(more)


def test_circles_without_a_first_pod_have_no_waves() -> None:
    assert plan({(0, 0): 1, (1, 0): 1}, affinity(0, 1), affinity(1, 0)) is None


def test_a_pod_on_a_node_with_one_of_two_keys_bars_a_first_pod() -> None:
    """kube-scheduler counts a pod for each key that its node has; it does not hold the other key.

    Both share the zone; they were taken for one domain.
    """
    on = columns(node("n0", labels={"zone": "z", "host": "n0"}), node("n1", labels={"zone": "z"}))
    keys = ("zone", "host")
    near = RequiredAffinity(1, keys, (frozenset(), frozenset()), frozenset({0, 1}))
    assert plan({(0, 1): 1, (1, 0): 1}, near, on=on) == {(1, 0): 0, (0, 1): 1}


def test_a_thousand_pods_with_a_node_each_are_planned_within_bounds() -> None:
    """Each in a zone of its own, with affinity to the others: tried up to the bound."""
    on = columns(*(node(f"n{at:04}", labels={"zone": f"z{at}"}) for at in range(1000)))
    pods = np.ones((1, 1000), dtype=np.int64)
    found = plan_release_waves(pods, [affinity(0, 0)], on.traits)
    assert found.count == 0
    assert found.steps < 10_000_000


def test_chains_of_units_with_affinity_are_planned_within_bounds() -> None:
    """Each look goes from unit to unit, and there are many to be had: it took half a minute."""
    on = columns(*(node(f"n{at:04}", labels={"zone": f"z{at}"}) for at in range(64)))
    row = [affinity(unit, unit, (unit + 1) % 64) for unit in range(64)]
    found = plan_release_waves(np.ones((64, 64), dtype=np.int64), row, on.traits)
    assert found.count == 0
    assert MOST_STEPS < found.steps < 2 * MOST_STEPS

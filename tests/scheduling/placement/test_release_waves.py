"""Who is released when, if not every order of binding succeeds?"""

from collections.abc import Mapping

import numpy as np
import pytest

from scheduling.filters.inter_pod_affinity import Attraction
from scheduling.placement.release_waves import MOST_STEPS, MOST_WAVES, plan_release_waves
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import columns, node

ZONES = columns(*(node(f"n{at}", labels={"zone": f"z{at}", "host": f"n{at}"}) for at in range(12)))


def drawn(
    unit: int, *partners: int, key: str = "zone", is_not_requeued: bool = False
) -> Attraction:
    return Attraction(unit, (key,), (frozenset(),), frozenset(partners), is_not_requeued)


def plan(
    pods: Mapping[tuple[int, int], int], *near: Attraction, on: NodeSnapshot = ZONES
) -> dict[tuple[int, int], int] | None:
    """Return the wave of each cell (unit, node); None where there is no plan."""
    placed = np.zeros((1 + max(unit for unit, _ in pods), len(on.names)), dtype=np.int64)
    for cell, count in pods.items():
        placed[cell] = count
    found = plan_release_waves(placed, near, on.traits)
    return {cell: int(found.of[cell]) for cell in pods} if found.count else None


def test_pods_that_are_drawn_to_nobody_are_released_at_once() -> None:
    assert plan({(0, 0): 3, (1, 5): 2}) == {(0, 0): 0, (1, 5): 0}


def test_where_nobody_is_placed_there_is_nothing_to_wait_for() -> None:
    nobody = np.zeros((1, 12), dtype=np.int64)
    assert plan_release_waves(nobody, [drawn(0, 0)], ZONES.traits).count == 1
    assert plan_release_waves(nobody[:, :0], [drawn(0, 0)], columns().traits).count == 1


def test_a_series_in_one_place_needs_no_waves() -> None:
    """Whoever comes first begins, and holds the others."""
    assert plan({(0, 0): 3, (1, 0): 2}, drawn(0, 0, 1), drawn(1, 0, 1)) == {(0, 0): 0, (1, 0): 0}


def test_who_begins_comes_before_those_who_would_spoil_it() -> None:
    assert plan({(0, 0): 1, (1, 1): 1}, drawn(1, 0, 1)) == {(1, 1): 0, (0, 0): 1}


def test_whom_the_later_wave_holds_comes_with_it() -> None:
    """Pods of the unit that begins find company in a second place only there."""
    assert plan({(1, 1): 2, (0, 0): 1, (1, 0): 1}, drawn(1, 0, 1)) == {
        (1, 1): 0,
        (0, 0): 1,
        (1, 0): 1,
    }


def test_who_spoils_nothing_does_not_wait() -> None:
    """The third unit is nobody's company."""
    assert plan({(0, 0): 1, (1, 1): 1, (2, 2): 4}, drawn(1, 0, 1))[2, 2] == 0  # type: ignore[index]


def test_beginnings_that_spoil_each_other_have_a_wave_each() -> None:
    """Who minds the most others begins first; where two mind each other neither can."""
    near = drawn(0, 0), drawn(1, 0, 1), drawn(2, 0, 1, 2)
    assert plan({(0, 0): 1, (1, 1): 1, (2, 2): 1}, *near) == {(2, 2): 0, (1, 1): 1, (0, 0): 2}
    assert plan({(0, 0): 1, (1, 1): 1}, drawn(0, 0, 1), drawn(1, 0, 1)) is None


def test_beginnings_that_have_nothing_to_do_with_each_other_share_a_wave() -> None:
    assert plan({(0, 0): 1, (1, 1): 1, (2, 2): 1}, drawn(0, 0, 2), drawn(1, 1, 2)) == {
        (0, 0): 0,
        (1, 1): 0,
        (2, 2): 1,
    }


def test_the_deaf_come_after_those_they_need() -> None:
    """Each needs the one before it, and none is tried again."""
    near = [drawn(unit, unit - 1, is_not_requeued=True) for unit in (1, 2)]
    assert plan(dict.fromkeys(((0, 0), (1, 0), (2, 0)), 1), *near) == {
        (0, 0): 0,
        (1, 0): 1,
        (2, 0): 2,
    }


@pytest.mark.parametrize("more", [0, 1])
def test_no_more_waves_than_can_be_waited_for(more: int) -> None:
    units = MOST_WAVES + more
    near = [drawn(unit, unit - 1, is_not_requeued=True) for unit in range(1, units)]
    found = plan(dict.fromkeys(((unit, 0) for unit in range(units)), 1), *near)
    assert (found is None) is bool(more)


def test_circles_that_nobody_may_begin_have_no_waves() -> None:
    assert plan({(0, 0): 1, (1, 0): 1}, drawn(0, 1), drawn(1, 0)) is None


def test_a_node_without_one_of_the_keys_spoils_a_beginning_on_both() -> None:
    """kube-scheduler counts a pod for each key that its node has; it does not hold the other key.

    Both share the zone; the place was taken for one.
    """
    on = columns(node("n0", labels={"zone": "z", "host": "n0"}), node("n1", labels={"zone": "z"}))
    keys = ("zone", "host")
    near = Attraction(1, keys, (frozenset(), frozenset()), frozenset({0, 1}))
    assert plan({(0, 1): 1, (1, 0): 1}, near, on=on) == {(1, 0): 0, (0, 1): 1}


def test_a_thousand_pods_with_a_node_each_are_planned_within_bounds() -> None:
    """All in zones of their own and drawn to each other: tried up to the bound, then said so."""
    on = columns(*(node(f"n{at:04}", labels={"zone": f"z{at}"}) for at in range(1000)))
    pods = np.ones((1, 1000), dtype=np.int64)
    found = plan_release_waves(pods, [drawn(0, 0)], on.traits)
    assert found.count == 0
    assert found.steps < 10_000_000


def test_units_that_are_drawn_to_each_other_in_a_row_are_planned_within_bounds() -> None:
    """Each look goes from unit to unit, and there are many to be had: it took half a minute."""
    on = columns(*(node(f"n{at:04}", labels={"zone": f"z{at}"}) for at in range(64)))
    row = [drawn(unit, unit, (unit + 1) % 64) for unit in range(64)]
    found = plan_release_waves(np.ones((64, 64), dtype=np.int64), row, on.traits)
    assert found.count == 0
    assert MOST_STEPS < found.steps < 2 * MOST_STEPS

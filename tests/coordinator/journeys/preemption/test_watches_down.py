"""What is tried of victims, and what is not done while a watch is down."""

from collections.abc import Callable

import pytest

from coordinator.messages.actions import (
    ResumeRayJob,
    TryEviction,
)
from coordinator.reconcile.eviction_dry_run import AT_ONCE
from tests.coordinator.builders import Json, gang_of
from tests.coordinator.journeys.preemption.unsure_worlds import (
    asks,
    elastic,
    in_a_team,
    in_mind,
    slots,
    whole,
    writes_its_end,
)
from tests.coordinator.journeys.preemption.worlds import IN_TEAM, PDB, evicted
from tests.coordinator.journeys.test_stopped_jobs import (
    SHUTDOWN,
    note_on,
    sent,
    state_of,
    with_job,
)
from tests.coordinator.stopping import (
    act_until,
    choose_whole,
    ending,
    go_until,
    names_of,
    out_of_sight,
)

# ---- what is asked for


def test_no_further_dry_run_is_asked_for_after_one_was_refused() -> None:
    world = in_a_team(gang_of("v", 20, labels=IN_TEAM), cpu=21)
    world.api.budgets.update(dict.fromkeys(names_of(world.pods("v")), PDB))
    go_until(world, lambda: asks(world, TryEviction))
    world.leader.act()
    assert sent(world, TryEviction) == AT_ONCE


# ---- a watch is down


def test_no_dry_run_is_asked_for_while_a_watch_is_down() -> None:
    world = in_a_team(gang_of("v", 20, labels=IN_TEAM), cpu=21)
    go_until(world, lambda: asks(world, TryEviction))
    with out_of_sight(world):
        world.leader.act_all()
        assert sent(world, TryEviction) == AT_ONCE
    assert sent(world, TryEviction) == 21
    world.settle(seconds=30)
    assert (world.gated("v"), world.bound("p").total()) == (21, 2)


@pytest.mark.parametrize("victim", [whole, elastic])
def test_nothing_is_decided_to_end_while_a_watch_is_down(victim: Callable[[], Json]) -> None:
    """All dry runs are accepted, and meanwhile the gang goes that they were for."""
    world = in_a_team(victim())
    go_until(world, lambda: asks(world, TryEviction))
    before = names_of(world.pods("v"))
    with out_of_sight(world):
        world.leader.act_all()
        assert (in_mind(world), ending(world, "v")) == (0, [])
        world.delete("rayclusters", "p")
        world.leader.hear("rayclusters")
        assert world.leader.state.known.term.trials, "they are settled once all is seen"
    world.settle(seconds=60)
    assert (evicted(world), names_of(world.pods("v"))) == ([], before)
    assert not world.leader.state.known.term.trials


@pytest.mark.parametrize("victim", [whole, elastic])
def test_what_is_to_end_is_not_evicted_and_not_undone_while_a_watch_is_down(
    victim: Callable[[], Json],
) -> None:
    world = in_a_team(victim())
    go_until(world, lambda: writes_its_end(world))
    before = names_of(world.pods("v"))
    with out_of_sight(world):
        world.delete("rayclusters", "p")
        world.leader.hear("rayclusters")
        world.leader.act_all()
        assert evicted(world) == []
        assert (in_mind(world), len(ending(world, "v"))) == (1, 1)
    world.settle(seconds=60)
    assert (evicted(world), names_of(world.pods("v"))) == ([], before)
    assert (ending(world, "v"), world.status("v")["phase"]) == ([], "Running")
    assert slots(world) == {"n1": 5}


@pytest.mark.parametrize(("victim", "left"), [(whole, 5), (elastic, 2)])
def test_what_was_to_end_when_a_watch_broke_ends_once_it_is_back(
    victim: Callable[[], Json], left: int
) -> None:
    world = in_a_team(victim())
    go_until(world, lambda: evicted(world))
    world.leader.act()
    with out_of_sight(world):
        asked = len(evicted(world))
        world.controllers()
        for plural in ("gangs", "rayclusters"):
            world.leader.hear(plural)
        world.leader.act_all()
        assert len(evicted(world)) == asked
    world.settle(seconds=30)
    assert (world.gated("v"), world.bound("p").total()) == (left, 2)
    assert ending(world, "v") == []


def test_no_rayjob_is_resumed_while_a_watch_is_down() -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: note_on(world) is not None)
    with out_of_sight(world):
        for _ in range(10):
            world.controllers()
            world.leader.hear("rayjobs")
            world.leader.act_all()
        assert (state_of(world), sent(world, ResumeRayJob)) == ("Suspended", 0)
    world.settle(seconds=10)
    assert (state_of(world), sent(world, ResumeRayJob)) == ("Initializing", 1)

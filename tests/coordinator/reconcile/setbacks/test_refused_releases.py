"""A gang whose release is refused for ever gives its room to others."""

import pytest

from coordinator.messages.actions import FencePod, ReleasePod
from coordinator.messages.clock import Patience
from kube.api.errors import ApiError, Forbidden, Invalid
from tests.coordinator.builders import gang_of, node
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import decided
from tests.coordinator.replica import WALL
from tests.coordinator.world import World, key, name_of

PATIENCE = Patience()
POLICY = Forbidden(403, "Forbidden", "policy says no")


def refused_world(name: str = "a", replicas: int = 1) -> World:
    """A gang of two is placed where no other fits, and the release of its head is refused."""
    world = World(node("n1", cpu=2), replicas=replicas)
    world.create(gang_of(name, 1))
    decided(world)
    world.api.refusals[name_of(world.pods(name)[0])] = POLICY
    world.settle(seconds=PATIENCE.torn - 1)
    assert world.status(name)["reason"] == "ReleaseRefused"
    return world


def refused_after_a_release_of_unknown_end() -> World:
    """A gang whose head's release may still be under way; those after it are refused."""
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 1))
    decided(world)
    world.leader.act(outcome=Outcome.HELD)
    world.api.refusals[name_of(world.pods("a")[0])] = POLICY
    world.settle(seconds=PATIENCE.torn - 1)
    return world


def test_the_next_gang_gets_the_room_and_the_gang_says_why() -> None:
    world = refused_world()
    world.create(gang_of("b", 1))
    world.settle(seconds=60)
    assert world.bound("b") == {"n1": 2}
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    assert "gave its room back, for a release is refused: 403 Forbidden" in status["message"]
    assert "placement" not in status


def test_it_goes_after_gangs_of_lower_priority_for_a_while() -> None:
    world = World(node("n1", cpu=2))
    low = {"kind": "PriorityClass", "metadata": {"name": "low"}, "value": -5}
    world.create(low, gang_of("a", 1))
    decided(world)
    world.api.refusals[name_of(world.pods("a")[0])] = POLICY
    world.settle(seconds=60)
    world.create(
        gang_of("z", 1, labels={"muster.dev/gang": "true", "muster.dev/priority-class": "low"})
    )
    world.settle(seconds=PATIENCE.torn)
    assert world.bound("z") == {"n1": 2}


def test_each_setback_in_a_row_takes_twice_as_long_within_bounds() -> None:
    world = refused_world()
    [view] = world.leader.state.known.views.values()
    lasted: list[float] = []
    while len(lasted) < 7:
        before = view.refused_releases.until
        world.settle(seconds=10)
        if view.refused_releases.until != before:
            lasted.append(view.refused_releases.until - WALL - world.api.now)
    expected = [min(2**n, 32) * PATIENCE.setback for n in range(7)]
    assert lasted == pytest.approx(expected, abs=10)


def test_alone_it_is_tried_again_and_starts_when_the_refusal_ends() -> None:
    world = refused_world()
    world.settle(seconds=60)
    assert world.status("a")["reason"] == "ReleaseRefused"
    world.api.refusals.clear()
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2}
    assert world.status("a")["message"] == "the minimum is ready"
    [view] = world.leader.state.known.views.values()
    assert (view.refused_releases.count, view.refused_releases.text) == (0, "")


@pytest.mark.parametrize("status", [400, 403, 422])
def test_a_policy_that_refuses_every_change_of_the_pod_keeps_no_room_either(status: int) -> None:
    """As most policies do; a webhook that says no without a code is heard as a 400."""
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 1))
    decided(world)
    world.api.frozen[name_of(world.pods("a")[0])] = ApiError(status, "Denied", "policy says no")
    world.settle(seconds=PATIENCE.torn - 1)
    assert world.status("a")["reason"] == "ReleaseRefused"
    world.create(gang_of("b", 1))
    world.settle(seconds=60)
    assert world.bound("b") == {"n1": 2}
    assert "policy says no" in world.status("a")["message"]
    world.api.frozen.clear()
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2}


def test_its_place_is_its_own_again_after_a_while() -> None:
    world = refused_world()
    world.create(gang_of("b", 1))
    world.settle(seconds=PATIENCE.setback + 60)
    [mine] = [view for view in world.leader.state.known.views.values() if view.key.name == "a"]
    assert mine.refused_releases.count == 1
    assert getattr(mine.queueing.asked, "setbacks", None) == 0


def test_another_leader_knows_how_long_its_place_is_not_its_own() -> None:
    world = refused_world(replicas=2)
    world.create(gang_of("b", 1))
    world.settle(seconds=60)
    before = world.status("a")["refusedReleases"]
    assert before["count"] == 1
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=60)
    mine = world.replicas[1].state.known.views[key("a")]
    assert getattr(mine.queueing.asked, "setbacks", None) == 1
    assert world.status("a")["refusedReleases"] == before
    world.settle(seconds=PATIENCE.setback)
    assert getattr(mine.queueing.asked, "setbacks", None) == 0


def test_no_room_is_given_back_while_a_release_may_still_arrive() -> None:
    """A release with unknown end came before the refusals: the pod is fenced first."""
    world = refused_after_a_release_of_unknown_end()
    leader = world.leader
    leader.log.clear()
    world.create(gang_of("b", 1))
    world.settle(seconds=60)
    assert world.bound("b") == {"n1": 2}
    mine = [each for each in leader.log if isinstance(each, FencePod | ReleasePod)]
    assert isinstance(mine[0], FencePod)
    world.api.refusals.clear()
    assert isinstance(leader.client.let_go(), Invalid)


def test_a_fence_that_fails_while_a_release_may_still_arrive_keeps_the_room() -> None:
    """Safe before useful: the late release could take room that is promised to another."""
    world = refused_after_a_release_of_unknown_end()
    leader = world.leader
    world.create(gang_of("b", 1))
    world.kuberay()
    leader.hear_all()
    world.api.now += 16.0
    leader.tick()
    fences = [at for at, each in enumerate(leader.todo) if isinstance(each, FencePod)]
    leader.act(fences[0], outcome=Outcome.BROKEN)
    leader.hear_all()
    leader.act_all_but(FencePod)
    leader.cycle()
    leader.act_all_but(FencePod)
    assert "placement" in world.status("a")
    assert world.gated("b") == 2


def test_a_late_release_that_is_accepted_after_all_ends_the_retreat() -> None:
    world = refused_after_a_release_of_unknown_end()
    leader = world.leader
    world.api.refusals.clear()
    assert leader.client.let_go() is None
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2}
    assert world.status("a")["reason"] == "Running"


def frozen_while_a_release_may_arrive(after: float) -> World:
    """A release of unknown end, and a pod that nobody may change any more.

    A new leader takes over, which must fence what the earlier one may be releasing.
    """
    world = World(node("n1", cpu=2), replicas=2)
    world.create(gang_of("a", 1))
    decided(world)
    world.leader.act(outcome=Outcome.HELD)
    world.api.frozen[name_of(world.pods("a")[0])] = POLICY
    world.leader.resign()
    world.elect(1)
    world.create(gang_of("b", 1))
    world.settle(seconds=after)
    return world


def test_a_fence_that_is_refused_for_ever_keeps_no_room_for_ever() -> None:
    """No release is under way for ever: client and API server have their deadlines."""
    world = frozen_while_a_release_may_arrive(PATIENCE.torn + PATIENCE.arrival - 10)
    assert (world.bound("b"), "placement" in world.status("a")) == ({}, True)
    world.settle(seconds=30)
    assert (world.bound("b"), "placement" in world.status("a")) == ({"n1": 2}, False)


def test_it_is_fenced_before_its_next_release_all_the_same() -> None:
    world = frozen_while_a_release_may_arrive(PATIENCE.torn + PATIENCE.arrival + 20)
    world.api.frozen.clear()
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2}
    assert isinstance(world.replicas[0].client.let_go(), Invalid)
    mine = [each for each in world.replicas[1].log if isinstance(each, FencePod | ReleasePod)]
    assert isinstance(mine[0], FencePod)

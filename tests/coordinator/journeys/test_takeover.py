"""The next leader completes what the last one left, and fences what it may still be doing."""

import pytest

from coordinator.messages.actions import FencePod, ReleasePod, WriteGangStatus
from kube.api.errors import Invalid
from kube.objects import names
from scheduling.model.gang import GangKey
from tests.coordinator.api import key_of
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, group, node, ray_cluster
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import decided
from tests.coordinator.world import World


@pytest.mark.parametrize("sent", range(6))
def test_a_half_released_gang_is_completed_exactly_as_it_was_written(sent: int) -> None:
    """Killed after any number of releases: the same nodes, each pod fenced before its release."""
    world = World(node("n1", cpu=3), node("n2", cpu=3))
    world.create(gang_of("a", 5))
    decided(world)
    leader = world.leader
    placement = world.status("a")["placement"]
    for _ in range(sent):
        leader.act()
    leader.restart()
    leader.log.clear()
    world.create(node("n0", cpu=64))  # where a new decision would rather go
    world.elect(0)
    world.settle(seconds=60)

    left = 6 - sent
    assert world.status("a")["placement"] == placement
    assert world.bound("a") == {"n1": 3, "n2": 3}
    work = [type(a) for a in leader.log if isinstance(a, FencePod | ReleasePod)]
    assert work == [FencePod] * left + [ReleasePod] * left


def test_a_placement_that_was_decided_and_not_written_is_nothing_to_the_next_leader() -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    leader = world.leader
    world.kuberay()
    leader.hear_all()
    leader.act_all()
    leader.cycle()
    leader.restart()
    world.delete("nodes", "n1")
    world.create(node("n2", cpu=3))
    world.elect(0)
    world.settle(seconds=5)
    assert world.bound("a") == {"n2": 3}


def old_leader_holds_a_release(world: World) -> tuple[str, str]:
    """The head's release is on its way, with an unknown end; another replica leads."""
    world.create(gang_of("a", 1))
    decided(world)
    old = world.leader
    [release] = old.releases()
    old.act(outcome=Outcome.HELD, reads_fail=True)
    return release


def test_a_release_of_the_old_leader_that_arrives_after_the_fence_fails() -> None:
    """The pod was moved meanwhile: it ends on its new node, and one release succeeds."""
    world = World(node("n1", cpu=2), node("n2", cpu=2), replicas=2)
    head, before = old_leader_holds_a_release(world)
    old, new = world.replicas
    world.create(foreign_pod("thief", before, cpu=2))
    world.elect(1)
    new.act_all_but(ReleasePod)
    new.cycle()
    new.act_all_but(ReleasePod)
    assert isinstance(old.client.let_go(), Invalid)

    world.replicas = [new]
    world.settle(seconds=60)
    after = ({"n1", "n2"} - {before}).pop()
    assert world.bound("a") == {after: 2}
    assert [node for pod, node in new.releases() if pod == head] == [after]


def test_a_record_of_a_release_that_counted_no_decisions_is_fenced_too() -> None:
    """Upgraded while a release is on its way: the placement is there, its number is not."""
    world = World(node("n1", cpu=2), node("n2", cpu=2), replicas=2)
    _, before = old_leader_holds_a_release(world)
    old, new = world.replicas
    world.api.change(world.gang("a"), lambda obj: obj["status"].pop("decided"), "status")
    world.create(foreign_pod("thief", before, cpu=2))
    world.elect(1)
    new.act_all_but(ReleasePod)
    new.cycle()
    new.act_all_but(ReleasePod)
    assert isinstance(old.client.let_go(), Invalid)


def test_a_release_of_the_old_leader_that_arrives_before_the_fence_stands() -> None:
    world = World(node("n1", cpu=2), node("n2", cpu=2), replicas=2)
    head, before = old_leader_holds_a_release(world)
    old, new = world.replicas
    world.elect(1)
    assert old.client.let_go() is None
    world.replicas = [new]
    world.settle(seconds=60)

    assert world.bound("a") == {before: 2}
    assert head not in [pod for pod, _ in world.released_by(new)]


def test_a_release_held_over_a_placement_that_is_dropped_at_once_fails() -> None:
    """The new leader finds the node gone and decides all anew: still a fence comes first."""
    world = World(node("n1", cpu=2), node("n2", cpu=2), replicas=2)
    _, before = old_leader_holds_a_release(world)
    old, new = world.replicas
    world.delete("nodes", before)
    world.elect(1)
    while not new.releases():
        new.cycle()
        new.act_all_but(ReleasePod)
    assert isinstance(old.client.let_go(), Invalid)
    world.replicas = [new]
    world.settle(seconds=60)
    assert world.bound("a") == {({"n1", "n2"} - {before}).pop(): 2}


@pytest.mark.parametrize("leaders", [2, 3])
def test_a_release_held_while_the_record_is_deleted_fails_under_every_later_leader(
    leaders: int,
) -> None:
    """Neither a record nor a pin tells of it; the second leader has no room for the gang."""
    world = World(node("n1", cpu=2), node("n2", cpu=2), replicas=2)
    _, before = old_leader_holds_a_release(world)
    old, new = world.replicas
    world.delete("gangs", "a")
    thief = foreign_pod("thief", ({"n1", "n2"} - {before}).pop(), cpu=2)
    world.delete("nodes", before)
    world.create(thief)
    world.replicas = [new]
    for _ in range(leaders - 1):
        new.restart()
        world.elect(0)
        world.settle(seconds=60)
    assert world.status("a")["phase"] == "Queued"
    world.create(node("n3", cpu=2))
    world.elect(0)
    while not new.releases():
        new.hear_all()
        new.cycle()
        new.act_all_but(ReleasePod)
        world.api.now += 1.0
    assert isinstance(old.client.let_go(), Invalid)
    world.settle(seconds=60)
    assert world.bound("a") == {"n3": 2}


def test_a_placement_that_was_given_up_is_remembered_by_its_number() -> None:
    """Its release is on its way to a node that is lost; the record alone can tell of it."""
    world = World(node("n1", cpu=2))
    _, before = old_leader_holds_a_release(world)
    world.delete("nodes", before)
    world.settle(seconds=60)
    assert "placement" not in world.status("a")
    assert world.status("a")["decided"] == 1
    late = world.leader.client.held
    world.leader.restart()
    world.create(node("n2", cpu=2))
    world.elect(0)
    while not world.leader.releases()[1:]:
        world.leader.hear_all()
        world.leader.cycle()
        world.leader.act_all_but(ReleasePod)
        world.api.now += 1.0
    world.leader.client.held = late
    assert isinstance(world.leader.client.let_go(), Invalid)


def test_gangs_of_which_nothing_was_decided_cost_no_fence_after_a_takeover() -> None:
    world = World(node("n1", cpu=1))
    world.create(gang_of("a", 1))
    world.settle(seconds=60)
    assert "decided" not in world.status("a")
    world.leader.restart()
    world.create(node("n2", cpu=2))
    world.elect(0)
    world.settle(seconds=60)
    assert world.bound("a").total() == 2
    assert not [a for a in world.leader.log if isinstance(a, FencePod)]


def test_a_status_write_of_the_old_leader_that_arrives_late_fails() -> None:
    world = World(node("n1", cpu=2), replicas=2)
    world.create(gang_of("a", 1))
    old, new = world.replicas
    world.kuberay()
    old.hear_all()
    old.act_all()
    old.cycle()
    [write] = old.todo
    assert isinstance(write, WriteGangStatus)
    old.act(outcome=Outcome.HELD, reads_fail=True)
    world.elect(1)
    new.cycle()
    new.act_all()
    assert isinstance(old.client.let_go(), Invalid)
    assert world.status("a")["epoch"] == 2
    assert old.releases() == []


def test_an_old_leader_that_learns_of_it_forgets_all_that_it_meant_to_do() -> None:
    world = World(node("n1", cpu=2), replicas=2)
    world.create(gang_of("a", 1))
    decided(world)
    world.leader.resign()
    assert world.leader.state.known.views == {}
    assert world.leader.state.next_wake is None
    assert world.leader.state.known.cache.columns().used.sum() == 0


@pytest.mark.parametrize("clean", [True, False])
def test_pods_are_fenced_unless_no_request_of_an_earlier_leader_can_be_under_way(
    clean: bool,
) -> None:
    """A leader that dies after some releases; or one that ended in order, its requests answered."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    world.leader.act()
    world.leader.restart()
    world.leader.log.clear()
    world.elect(0, clean=clean)
    assert world.leader.state.has_fenced(world.epoch) is clean
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3}
    assert any(isinstance(a, FencePod) for a in world.leader.log) is not clean
    assert world.leader.state.has_fenced(world.epoch)


def test_a_term_begins_with_nothing_of_one_whose_end_was_never_told() -> None:
    """The second leader has placed the gang; the first leads again, and has been told of that."""
    world = World(node("n1", cpu=3), replicas=2)
    world.create(gang_of("a", 2))
    world.leader.hear_all()
    world.leader.leading = False
    world.elect(1)
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Running"
    world.leader.hear_all()
    world.elect(0)
    world.settle(seconds=5)
    view = world.leader.state.known.views[GangKey(TEAM, "a")]
    assert view.reservation.placement is not None
    assert world.status("a")["phase"] == "Running"


def test_a_leader_that_knows_not_where_a_release_is_does_not_say_that_all_is_answered() -> None:
    """It stays so for the rest of its term, also when the release has arrived since."""
    world = World(node("n1", cpu=2), node("n2", cpu=2))
    assert world.leader.has_answers(world.epoch)
    old_leader_holds_a_release(world)
    assert not world.leader.has_answers(world.epoch)
    world.leader.client.let_go()
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2}
    assert not world.leader.has_answers(world.epoch)
    world.leader.resign()
    world.elect(0)
    assert world.leader.has_answers(world.epoch)


def test_a_term_that_has_not_begun_knows_of_no_pod_that_it_would_have_to_fence() -> None:
    """It may end before its beginning is handled, and must not say that all is over."""
    world = World(node("n1", cpu=3))
    assert world.leader.state.has_fenced(world.epoch)
    assert not world.leader.state.has_fenced(world.epoch + 1)


def test_pods_of_a_gang_of_which_nothing_was_decided_leave_a_term_clean() -> None:
    """They are never fenced, and may wait for days."""
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 2))
    world.settle(seconds=30)
    world.leader.restart()
    world.elect(0)
    assert world.leader.state.has_fenced(world.epoch)


def test_pods_that_came_after_the_takeover_need_no_fence() -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    world.leader.restart()
    world.elect(0)
    victim = key_of(world.pods("a")[1])
    world.api.delete(victim)
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}
    assert not [a for a in world.leader.log if isinstance(a, FencePod)]


def test_a_second_fence_in_one_term_carries_another_mark() -> None:
    """The same mark would not change the pod, hence fence nothing."""
    world = World(node("n1", cpu=2), node("n2", cpu=2), node("n3", cpu=2))
    world.create(gang_of("a", 1))
    decided(world)
    leader = world.leader
    for _ in range(2):
        leader.act(outcome=Outcome.HELD)
        world.delete("nodes", leader.releases()[-1][1])
        leader.hear("nodes")
        world.api.now += 1.0
        leader.tick()
        leader.act_all_but(ReleasePod)
        leader.cycle()
        leader.act_all_but(ReleasePod)
    marks = [a.token for a in leader.log if isinstance(a, FencePod)]
    assert marks == ["1.1", "1.2"]
    assert isinstance(leader.client.let_go(), Invalid)
    assert isinstance(leader.client.let_go(), Invalid)
    world.settle(seconds=5)
    assert world.bound("a").total() == 2


def test_a_fence_is_an_annotation_of_the_pod_that_names_the_term() -> None:
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 1))
    decided(world)
    world.leader.restart()
    world.elect(0)
    world.leader.act_all_but(ReleasePod)
    marks = {pod["metadata"]["annotations"].get(names.FENCE) for pod in world.pods("a")}
    assert marks == {"2.0"}


def test_a_mark_that_was_forged_on_a_pod_is_no_fence() -> None:
    """A tenant can guess the next one, and a mark that is there already changes nothing."""
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 1))
    decided(world)
    for pod in world.pods("a"):
        world.api.change(
            pod, lambda obj: obj["metadata"]["annotations"].update({names.FENCE: "2.0"})
        )
    world.leader.restart()
    world.elect(0)
    world.leader.act_all_but(ReleasePod)
    marks = {pod["metadata"]["annotations"].get(names.FENCE) for pod in world.pods("a")}
    assert marks == {"2.1"}
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 2}


def test_a_waiting_gang_is_left_alone_by_a_new_leader() -> None:
    world = World(node("n1", cpu=2))
    world.create(ray_cluster("a", group("workers", 4)))
    world.settle(seconds=60)
    before = world.status("a")
    world.leader.restart()
    world.leader.log.clear()
    world.elect(0)
    world.settle(seconds=60)
    assert world.leader.log == []
    assert before == world.status("a")


def test_nodes_that_are_heard_of_late_cost_the_next_leader_nothing() -> None:
    """The node of a placement may come to be known after the placement itself."""
    world = World(node("n1", cpu=2), replicas=2)
    world.create(gang_of("a", 1))
    decided(world)
    world.leader.act()
    world.leader.leading = False
    new = world.replicas[1]
    nodes = new.watch.queues["nodes"]
    late = list(nodes)
    nodes.clear()
    new.hear_all()
    nodes.extend(late)
    new.lead(2)
    world.epoch = 2
    world.replicas = [new]
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2}

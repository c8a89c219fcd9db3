"""Releases that are on their way while their gang changes: nobody else gets their room meanwhile.

A release may arrive as long as it is in flight, or as it is not known what became of it.
"""

import pytest

from coordinator.gang.nominations import Guard
from coordinator.messages.actions import Action, FencePod, ReleasePod
from coordinator.messages.clock import Patience
from kube.api.errors import Forbidden
from tests.coordinator.api import Json, Key
from tests.coordinator.builders import TEAM, gang_of, group, node, ray_cluster, template
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import apart, decided, in_zones
from tests.coordinator.journeys.queues.worlds import gang_in, queue
from tests.coordinator.journeys.test_nodes import cordon
from tests.coordinator.replica import Replica
from tests.coordinator.world import World, key, name_of

PATIENCE = Patience()
POLICY = Forbidden(403, "Forbidden", "policy says no")


def go_on(replica: Replica, *but: type[Action]) -> None:
    """Have a replica do everything but some kinds of action."""
    for _ in range(4):
        replica.hear_all()
        replica.act_all_but(*(but or (ReleasePod, FencePod)))
        replica.cycle()


def asked_for(replica: Replica, name: str) -> list[tuple[str, str]]:
    """The releases of pods of a gang, and where to."""
    return [each for each in replica.releases() if each[0].startswith(f"{name}-")]


def releases(replica: Replica) -> list[ReleasePod]:
    return [each for each in replica.todo if isinstance(each, ReleasePod)]


def workers(world: World, name: str = "a") -> list[str]:
    return [name_of(pod) for pod in world.pods(name) if "workers" in name_of(pod)]


def without_new_pods_of(world: World, *gone: str) -> None:
    """Have KubeRay work, but not make the pods of `a` again that are gone."""
    kept = {name_of(pod) for pod in world.pods("a")} - {*gone}
    world.kuberay()
    for pod in world.pods("a"):
        if name_of(pod) not in kept:
            world.api.remove(Key("pods", TEAM, name_of(pod)))


def test_a_release_that_was_sent_long_after_its_gang_gave_up_may_still_arrive() -> None:
    """It stood in line at an API server that answers nobody: its time begins when it ends."""
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 1))
    decided(world)
    leader = world.leader
    world.api.hold(world.api.get(Key("rayclusters", TEAM, "a")), "x/y")
    world.create(gang_of("b", 1))
    world.kuberay()
    world.delete("rayclusters", "a")
    go_on(leader)
    head = name_of(world.pods("a")[0])
    world.api.now += PATIENCE.arrival - 5
    leader.tick()
    go_on(leader)
    leader.act(leader.todo.index(releases(leader)[0]), outcome=Outcome.HELD)
    world.api.frozen[head] = POLICY
    world.settle(seconds=10)
    assert asked_for(leader, "b") == []
    world.settle(seconds=PATIENCE.arrival)
    assert world.bound("b") == {"n1": 2}


def test_a_leader_gives_no_room_up_for_which_an_earlier_one_may_be_releasing_a_pod() -> None:
    """The gang asks for one pod less, and which of two slots the other one goes to is unknown."""
    world = World(node("n1", cpu=1), node("n2", cpu=1), node("n3", cpu=1), replicas=2)
    world.create(gang_of("a", 2))
    decided(world)
    world.leader.act()
    world.controllers()
    go_on(world.leader)
    last = max(releases(world.leader), key=lambda each: each.node)
    world.leader.act(world.leader.todo.index(last), outcome=Outcome.HELD)
    (other,) = {*workers(world)} - {last.pod.metadata.name}
    world.scale("a", 1)
    world.api.remove(Key("pods", TEAM, other))
    second = world.elect(1)
    world.create(gang_of("b", 0))
    world.kuberay()
    go_on(second)
    assert any(isinstance(each, FencePod) for each in second.todo)
    assert asked_for(second, "b") == []

    world.settle(seconds=30)
    assert world.bound("b").total() == 1


def test_slots_are_kept_for_a_refused_fence_no_longer_than_a_release_is_on_its_way() -> None:
    world = World(node("n1", cpu=1), node("n2", cpu=1), node("n3", cpu=1), replicas=2)
    world.create(gang_of("a", 2))
    decided(world)
    world.leader.act()
    world.controllers()
    first, last = workers(world)
    world.api.frozen[last] = POLICY
    world.scale("a", 1)
    world.api.remove(Key("pods", TEAM, first))
    world.leader.resign()
    world.elect(1)
    world.create(gang_of("b", 0))
    world.settle(seconds=PATIENCE.arrival - 10)
    assert world.bound("b") == {}
    world.settle(seconds=20)
    assert world.bound("b").total() == 1


@pytest.mark.parametrize("deed", ["a pod is lost", "more is asked for"])
def test_a_void_placement_of_an_earlier_leader_goes_once_its_releases_are_fenced(deed: str) -> None:
    world = World(node("n1", cpu=2), replicas=2)
    world.create(gang_of("a", 1))
    decided(world)
    world.leader.act(outcome=Outcome.HELD)
    (worker,) = workers(world)
    if deed == "a pod is lost":
        world.api.remove(Key("pods", TEAM, worker))
    else:
        world.scale("a", 5)
    second = world.elect(1)
    world.create(gang_of("b", 1))
    without_new_pods_of(world, worker)
    go_on(second)
    assert any(isinstance(each, FencePod) for each in second.todo)
    assert asked_for(second, "b") == []


@pytest.mark.parametrize("outcome", [None, Outcome.HELD])
def test_half_a_replica_keeps_the_slot_that_a_release_is_on_its_way_to(
    outcome: Outcome | None,
) -> None:
    """Its other half was to be on a node that is gone."""
    world = World(node("n1", cpu=1), node("n2", cpu=1), node("n3", cpu=1))
    world.create(ray_cluster("a", group("workers", 1, hosts=2)))
    decided(world)
    leader = world.leader
    leader.act()
    world.controllers()
    go_on(leader)
    one, other = releases(leader)
    if outcome is not None:
        leader.act(leader.todo.index(one), outcome=outcome)
    world.delete("nodes", other.node)
    world.create(gang_of("b", 0))
    world.kuberay()
    go_on(leader)
    assert asked_for(leader, "b") == []


@pytest.mark.parametrize("outcome", [None, Outcome.HELD])
def test_a_node_that_takes_no_pods_for_a_moment_keeps_the_room_of_what_is_sent_to_it(
    outcome: Outcome | None,
) -> None:
    """It is cordoned and uncordoned, and the release arrives after that."""
    world = World(node("n1", cpu=1), node("n2", cpu=1))
    world.create(ray_cluster("b", head=template(nodeSelector={"open": "to-b"}, priority=10)))
    world.settle(seconds=1)
    world.create(gang_of("a", 1))
    decided(world)
    leader = world.leader
    leader.act()
    world.controllers()
    go_on(leader)
    (worker,) = releases(leader)
    if outcome is not None:
        leader.act(leader.todo.index(worker), outcome=outcome)
    for each in world.api.all("nodes"):
        world.api.change(each, lambda obj: obj["metadata"]["labels"].update(open="to-b"))
    for off in (False, True):
        cordon(world, "n1", off=off)
        cordon(world, "n2", off=off)
        for _ in range(2):
            go_on(leader)
            leader.state.known.agenda.dirty.add(key("a"))
            leader.handle([])
    assert asked_for(leader, "b") == []
    world.settle(seconds=20)
    assert world.bound("a").total() == 2


@pytest.mark.parametrize("outcome", [Outcome.HELD, Outcome.BROKEN])
def test_a_release_in_doubt_is_called_back_from_a_node_that_refuses_and_not_sent_again(
    outcome: Outcome,
) -> None:
    world = World(node("n1", cpu=1), node("n2", cpu=1))
    world.create(gang_of("a", 1))
    decided(world)
    leader = world.leader
    leader.act()
    world.controllers()
    go_on(leader)
    (worker,) = releases(leader)
    leader.act(leader.todo.index(worker), outcome=outcome)
    cordon(world, worker.node)
    world.create(node("n3", cpu=1))
    world.settle(seconds=20)
    name = worker.pod.metadata.name
    assert [each for each in leader.releases() if each[0] == name] == [
        (name, worker.node),
        (name, "n3"),
    ]
    assert world.bound("a").keys() == {"n1", "n2", "n3"} - {worker.node}


def in_w(name: str) -> Json:
    return ray_cluster(name, head=template(nodeSelector={"zone": "w"}))


def test_a_gang_with_waves_that_loses_another_pod_keeps_the_slot_of_the_one_before() -> None:
    """All that waits in it is decided anew then, but what is released already is no more."""
    world = in_zones()
    world.create(apart(workers=2))
    world.settle(seconds=10)
    assert world.bound("a") == {"h1": 1, "w1": 2}
    first, second = workers(world)
    world.api.remove(Key("pods", TEAM, first))
    world.kuberay()
    go_on(world.leader)
    (replacement,) = releases(world.leader)
    assert replacement.node == "w1"
    world.create(in_w("b"), in_w("c"))
    world.kuberay()
    world.api.remove(Key("pods", TEAM, second))
    go_on(world.leader)
    assert len(asked_for(world.leader, "b") + asked_for(world.leader, "c")) == 1


def let_go_of(world: World, *done: Outcome) -> None:
    """Have a gang of two pods released, but not bound, then delete its RayCluster alone."""
    world.create(gang_of("a", 1))
    decided(world)
    for outcome in done:
        world.leader.act(outcome=outcome)
    world.delete("rayclusters", "a")
    world.create(gang_of("b", 1))
    world.kuberay()
    go_on(world.leader)


@pytest.mark.parametrize(
    "done",
    [(), (Outcome.DONE, Outcome.DONE), (Outcome.HELD,), (Outcome.DONE, Outcome.HELD)],
    ids=["on their way", "released", "in doubt", "one of each"],
)
def test_pods_that_outlast_their_raycluster_keep_the_room_that_they_still_take(
    done: tuple[Outcome, ...],
) -> None:
    """The garbage collector takes its time: meanwhile they are bound, or released even."""
    world = World(node("n1", cpu=2))
    let_go_of(world, *done)
    assert asked_for(world.leader, "b") == []
    world.collect_garbage()
    go_on(world.leader)
    assert asked_for(world.leader, "b")
    world.settle(seconds=1)
    assert world.bound("b") == {"n1": 2}


def test_room_for_pods_without_their_raycluster_is_not_kept_for_ever() -> None:
    """They were orphaned, and are never bound."""
    world = World(node("n1", cpu=2))
    let_go_of(world, Outcome.DONE, Outcome.DONE)
    world.api.now += PATIENCE.arrival - 1
    world.leader.tick()
    go_on(world.leader)
    assert asked_for(world.leader, "b") == []
    world.api.now += 2
    world.leader.tick()
    go_on(world.leader)
    assert asked_for(world.leader, "b")


def test_a_raycluster_that_is_made_anew_waits_for_the_room_of_the_pods_of_the_last_one() -> None:
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 1))
    decided(world)
    world.leader.act()
    world.leader.act()
    world.delete("rayclusters", "a")
    world.create(gang_of("a", 1))
    world.kuberay()
    go_on(world.leader)
    assert len(asked_for(world.leader, "a")) == 2  # those of the first
    world.collect_garbage()
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 2}


def test_pods_that_outlast_their_raycluster_hold_their_quota() -> None:
    """Of a queue that lets one of two gangs run, though there are nodes for both."""
    world = World(node("n1", cpu=2), node("n2", cpu=2), queue("team", cpu=2))
    world.create(gang_in("team", "a", 1))
    decided(world)
    world.leader.act()
    world.leader.act()
    world.delete("rayclusters", "a")
    world.create(gang_in("team", "b", 1))
    world.kuberay()
    go_on(world.leader)
    assert asked_for(world.leader, "b") == []
    world.collect_garbage()
    world.settle(seconds=1)
    assert world.bound("b").total() == 2


def test_a_nomination_that_is_taken_back_leaves_the_room_of_a_release_in_doubt() -> None:
    """Muster takes it back of a gated pod whose RayCluster is gone; its release may arrive yet."""
    world = World(node("n1", cpu=2), guard=Guard.NOMINATION)
    world.create(gang_of("a", 1))
    decided(world)
    world.leader.act(outcome=Outcome.HELD)
    for pod in world.pods("a"):
        world.api.change(pod, lambda obj: obj["status"].update(nominatedNodeName="n1"), "status")
    world.delete("rayclusters", "a")
    world.create(gang_of("b", 1))
    world.kuberay()
    for _ in range(5):
        go_on(world.leader)
        world.api.now += 1
        world.leader.tick()
    assert not any(pod["status"].get("nominatedNodeName") for pod in world.pods("a"))
    assert asked_for(world.leader, "b") == []
    world.collect_garbage()
    world.settle(seconds=1)
    assert world.bound("b") == {"n1": 2}


@pytest.mark.parametrize("on_record", [True, False])
def test_another_leader_keeps_the_room_of_pods_that_outlast_their_raycluster(
    on_record: bool,
) -> None:
    """Where a Gang says so: others may have made pods that look alike."""
    world = World(node("n1", cpu=2), replicas=2)
    let_go_of(world, Outcome.DONE, Outcome.DONE)
    if not on_record:
        world.api.remove(Key("gangs", TEAM, "a"))
    second = world.elect(1)
    go_on(second, ReleasePod)
    assert bool(asked_for(second, "b")) is not on_record
    world.collect_garbage()
    world.settle(seconds=1)
    assert world.bound("b") == {"n1": 2}


def test_a_raycluster_that_is_told_of_late_has_the_room_of_its_pods_counted_once() -> None:
    """A new leader has heard of its pods, and not yet of itself."""
    world = World(node("n1", cpu=2), replicas=2)
    second = world.replicas[1]
    second.hear_all()
    world.create(gang_of("a", 1))
    decided(world)
    world.leader.act()
    world.leader.act()
    world.leader.resign()
    world.elect(1, hear="gangs")
    table = second.state.known.cache.table
    assert key("a") not in second.state.known.views
    assert table._used["n1"]["cpu"] == 2000
    second.hear_all()
    assert key("a") in second.state.known.views
    assert table._used["n1"]["cpu"] == 2000

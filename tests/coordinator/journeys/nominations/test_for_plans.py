"""Nominations for a plan beside room that other gangs reserve on the same nodes."""

from coordinator.gang.nominations import Guard
from coordinator.messages.actions import DeletePod, NominatePod, ReleasePod
from kube.objects import names
from scheduling.model.gang import GangKey
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    OPTED_IN,
    TEAM,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.journeys.nominations.worlds import fields, go_on, nominations
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.validate import validate
from tests.coordinator.world import World, is_gated, name_of

LABELS = {**OPTED_IN, names.QUEUE: "team"}


def with_a_plan() -> World:
    """Gang v ends for p on one node, where gang g runs too."""
    world = World(
        node("n1", cpu=6),
        queue("team", preemption={"withinQueue": "LowerPriority"}),
        guard=Guard.NOMINATION,
        replicas=2,
    )
    world.create(gang_of("v", 3, labels=LABELS))
    world.create(ray_cluster("g", group("workers", 1), labels=LABELS, created=1))
    world.settle(seconds=10)
    world.kubelets = lambda: None  # type: ignore[method-assign]
    workers = group("workers", 3, priority=10)
    world.create(ray_cluster("p", workers, head=template(priority=10), labels=LABELS, created=2))
    world.settle(seconds=5)
    assert fields(world, "p") == {"n1"}
    return world


def lose_a_worker(world: World) -> None:
    """Have a worker of g end, and KubeRay replace it."""
    lost = next(pod for pod in world.pods("g") if "workers" in name_of(pod))
    world.api.remove(Key("pods", TEAM, name_of(lost)))


def test_a_replacement_gets_its_room_beside_a_plan() -> None:
    """kube-scheduler would count the nominated pods beside those that still end, and refuse it."""
    world = with_a_plan()
    asked = len(nominations(world))
    lose_a_worker(world)
    world.settle()
    assert world.bound("g") == {"n1": 2}
    assert not [each for each in world.leader.log if isinstance(each, DeletePod)]
    order = [a for a in world.leader.log if isinstance(a, NominatePod | ReleasePod)]
    taken_back = [a for a in order if isinstance(a, NominatePod)][asked:]
    assert [a.node for a in taken_back] == [""] * 4
    assert order.index(taken_back[-1]) < len(order) - 1 - order[::-1].index(_last_release(order))
    validate(world.leader.state)


def _last_release(order: list[NominatePod | ReleasePod]) -> ReleasePod:
    return [each for each in order if isinstance(each, ReleasePod)][-1]


def test_a_plan_is_nominated_again_once_the_reservation_is_taken() -> None:
    world = with_a_plan()
    lose_a_worker(world)
    world.settle()
    assert fields(world, "p") == {""}
    world.settle(seconds=1)
    assert fields(world, "p") == {"n1"}
    go_on(world)
    assert world.bound("p") == {"n1": 4}


def test_a_new_leader_releases_nothing_beside_a_plan_before_it_is_taken_back() -> None:
    """The earlier one had not come to that. This one opens the gang with the plan last."""
    world = with_a_plan()
    lose_a_worker(world)
    world.kuberay()
    old = world.leader
    old.hear_all()
    assert [each.node for each in old.todo if isinstance(each, NominatePod)] == [""] * 4
    new = world.elect(1, clean=True)
    assert GangKey(TEAM, "g") in new.state.known.views
    assert new.releases() == []
    assert [each.node for each in new.log if isinstance(each, NominatePod)] == [""] * 4
    new.act_all()
    assert len(new.releases()) == 1
    world.settle(seconds=1)
    assert world.bound("g") == {"n1": 2}


def test_what_is_nominated_for_a_plan_ends_where_its_own_gang_has_a_slot() -> None:
    """The room of a lost pod is taken by others, so a gang ends for it; then it loses another."""
    world = World(
        node("n1", cpu=7),
        queue("team", preemption={"withinQueue": "LowerPriority"}),
        guard=Guard.NOMINATION,
    )
    world.create(gang_of("v", 3, labels=LABELS))
    world.settle(seconds=10)
    workers = group("workers", 2, priority=10)
    world.create(ray_cluster("p", workers, head=template(priority=10), labels=LABELS, created=2))
    world.settle(seconds=10)
    assert world.bound("p") == {"n1": 3}
    world.kubelets = lambda: None  # type: ignore[method-assign]
    [first, *_] = [pod for pod in world.pods("p") if "workers" in name_of(pod)]
    world.create(foreign_pod("bare", "n1", cpu=1))
    world.api.remove(Key("pods", TEAM, name_of(first)))
    world.settle(seconds=5)
    waiting = [pod for pod in world.pods("p") if is_gated(pod)]
    assert {pod["status"].get("nominatedNodeName") for pod in waiting} == {"n1"}
    [lost, *_] = [pod for pod in world.pods("p") if "workers" in name_of(pod) and not is_gated(pod)]
    world.api.remove(Key("pods", TEAM, name_of(lost)))
    world.settle()
    assert world.bound("p") == {"n1": 2}

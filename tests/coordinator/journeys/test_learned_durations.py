"""How long gangs ran is learned from those that end, and kept in the status of their queue."""

import pytest

from coordinator.queues.durations import seconds_of, step_of
from coordinator.queues.learned_durations import LEAST, QueueDurations
from kube.objects import names
from kube.objects.queues.learned_durations import MOST_NAMESPACES
from scheduling.diagnosis.amount_texts import lasting
from tests.coordinator.api import Key
from tests.coordinator.builders import OPTED_IN, Json, group, node, ray_cluster, template
from tests.coordinator.journeys.queues.worlds import found, gang_in, queue, status_of
from tests.coordinator.journeys.test_fair_share import conditions
from tests.coordinator.ray_jobs import ray_job
from tests.coordinator.world import World

HOUR = 3600.0


def ran(world: World, name: str, hours: float) -> None:
    """Let a gang run for so long, and delete it."""
    world.create(gang_in("q", name, 3))
    world.settle(seconds=20)
    assert world.status(name)["phase"] == "Running"
    world.api.now += hours * HOUR - 20
    world.delete("rayclusters", name)
    world.settle(seconds=20)


def learned(world: World) -> Json:
    said: Json = status_of(world, "q").get("learnedDurations", {})
    return said


def of_team(world: World) -> tuple[int, dict[str, int]]:
    (mine,) = learned(world)["namespaces"]
    return mine["ended"], mine["seconds"]


def about(hours: float) -> str:
    return str(seconds_of(step_of(hours * HOUR)))


def team_world() -> World:
    return World(node("n1", cpu=4), queue("q", cpu=8))


def edit(world: World, said: Json) -> None:
    body = found(world, "q")
    status = {**body["status"], "learnedDurations": said}
    world.api.change(body, lambda obj: obj.update(status=status), "status")


def test_a_queue_in_which_nothing_ended_says_nothing() -> None:
    world = team_world()
    world.create(gang_in("q", "a", 3))
    world.settle(seconds=60)
    assert learned(world) == {}


def test_what_ends_is_counted_by_namespace() -> None:
    world = team_world()
    ran(world, "a", 2)
    ran(world, "b", 2)
    ran(world, "c", 0.1)
    assert of_team(world) == (3, {about(0.1): 1, about(2): 2})
    assert learned(world)["namespaces"][0]["typical"] == lasting(float(about(2)))


def test_the_next_leader_goes_on_with_it() -> None:
    world = team_world()
    ran(world, "a", 2)
    world.create(gang_in("q", "b", 3))
    world.settle(seconds=20)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=20)
    world.api.now += 2 * HOUR
    world.delete("rayclusters", "b")
    world.settle(seconds=20)
    assert of_team(world) == (2, {about(2): 2})


def test_gangs_that_never_ran_teach_nothing() -> None:
    world = World(node("n1", cpu=3), queue("q", cpu=8))
    world.create(gang_in("q", "never", 3))
    world.settle(seconds=HOUR)
    world.delete("rayclusters", "never")
    world.settle(seconds=20)
    assert learned(world) == {}


@pytest.mark.parametrize("low", [gang_in("q", "low", 3), ray_job("low", gang_in("q", "low", 3))])
def test_gangs_that_are_stopped_for_others_teach_nothing(low: Json) -> None:
    """Of a RayJob the RayCluster goes, as it does where the job has ended."""
    world = World(node("n1", cpu=4), queue("q", cpu=8, preemption={"withinQueue": "LowerPriority"}))
    world.create(low)
    world.settle(seconds=HOUR)
    workers, labels = group("workers", 3, priority=10), {**OPTED_IN, names.QUEUE: "q"}
    world.create(ray_cluster("high", workers, head=template(priority=10), labels=labels))
    world.settle(seconds=120)
    assert world.status("high")["phase"] == "Running"
    assert learned(world) == {}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"soon": 1}, "soon: 1"),
        ({"0": 1}, "0: 1"),
        ({"60": 0}, "60: 0"),
        ({"60": 65}, "60: 65"),
        ({"999999999": 1}, "999999999: 1"),
    ],
)
def test_what_cannot_be_read_counts_as_nothing_and_is_told(said: Json, words: str) -> None:
    world = team_world()
    ran(world, "a", 2)
    world.leader.restart()
    edit(world, {"namespaces": [{"name": "team", "ended": 1, "seconds": {**said, "7200": 1}}]})
    world.elect(0)
    world.settle(seconds=30)
    reason, message = conditions(world)["DurationsLearned"]
    assert reason == "UnreadableDurations"
    assert message.startswith(f'status.learnedDurations.namespaces[team].seconds: "{words}" is not')
    assert of_team(world) == (1, {about(2): 1})
    ran(world, "b", 2)
    assert of_team(world) == (2, {about(2): 2})


def test_a_leader_undoes_edits() -> None:
    world = team_world()
    ran(world, "a", 2)
    edit(world, {"namespaces": [{"name": "team", "seconds": {"60": 5}}]})
    world.settle(seconds=30)
    assert of_team(world) == (1, {about(2): 1})


def test_a_queue_that_is_made_anew_begins_anew() -> None:
    world = team_world()
    ran(world, "a", 2)
    world.api.delete(Key("gangqueues", "", "q"))
    world.settle(seconds=20)
    world.create(queue("q", cpu=8))
    world.settle(seconds=20)
    assert learned(world) == {}


def test_beyond_200_namespaces_those_with_the_fewest_count_as_one() -> None:
    mine = QueueDurations()
    for _ in range(LEAST):
        mine.learn("often", HOUR)
    for at in range(MOST_NAMESPACES + 50):
        mine.learn(f"n-{at}", 60)
    assert len(mine.namespaces) == MOST_NAMESPACES
    assert mine.rest.ended == 51
    (often, whole) = mine.of("often"), mine.of("n-0")
    assert often is not None
    assert (often.namespace, often.durations.ended) == ("often", LEAST)
    assert whole is not None
    assert (whole.namespace, whole.durations.ended) == ("", LEAST + MOST_NAMESPACES + 50)

"""A gang that fits goes from its creation to running."""

from collections.abc import Iterable

from coordinator.messages.actions import Action, CreateGang, EmitEvent, ReleasePod, WriteGangStatus
from coordinator.record.urgency import GATHER_DELAY, QUIET_DELAY, SETTLE_DELAY
from tests.coordinator.api import key_of
from tests.coordinator.builders import GPU, foreign_pod, gang_of, group, node, ray_cluster, template
from tests.coordinator.client import Outcome
from tests.coordinator.world import World


def kinds(actions: Iterable[Action]) -> list[type[Action]]:
    return [type(action) for action in actions]


def statuses(actions: Iterable[Action]) -> list[WriteGangStatus]:
    return [action for action in actions if isinstance(action, WriteGangStatus)]


def test_a_gang_that_fits_is_created_written_down_released_and_told_to_run() -> None:
    """One creation, two status writes and one release per pod: nothing else is written."""
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    world.settle(seconds=60)

    written = [a for a in world.leader.log if not isinstance(a, EmitEvent)]
    assert kinds(written) == [CreateGang, WriteGangStatus, *[ReleasePod] * 4, WriteGangStatus]
    assert [write.status["phase"] for write in statuses(written)] == ["Admitted", "Running"]
    assert world.bound("a") == {"n1": 4}


def test_the_gang_is_named_after_its_ray_cluster_and_goes_with_it() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    world.settle(seconds=60)

    gang, cluster = world.gang("a"), next(world.api.all("rayclusters"))
    assert gang["metadata"]["ownerReferences"][0]["uid"] == cluster["metadata"]["uid"]
    assert gang["spec"] == {
        "queue": "default",
        "priority": 0,
        "rayClusterUid": cluster["metadata"]["uid"],
        "podSets": [
            {"name": "headgroup", "count": 1, "minimum": 1},
            {"name": "workers", "count": 3, "minimum": 3},
        ],
    }


def test_the_placement_names_every_node_and_the_term_that_decided_it() -> None:
    world = World(node("big", cpu=2, gpu=8), node("small", cpu=2))
    workers = group("workers", 2, cpu=1, gpu=4)
    world.create(ray_cluster("a", workers, head=template(cpu=2)))
    world.settle(seconds=60)

    placement = world.status("a")["placement"]
    assert placement["epoch"] == world.epoch
    assert [(s["name"], s["assignments"][0]["nodes"]) for s in placement["podSets"]] == [
        ("headgroup", {"small": 1}),
        ("workers", {"big": 2}),
    ]
    assert placement["podSets"][1]["assignments"][0]["requests"] == {
        "cpu": "1000m",
        GPU: "4",
        "pods": "1",
    }


def test_workers_are_released_only_after_the_release_of_the_head_was_acknowledged() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    leader = world.leader
    world.kuberay()
    leader.hear_all()
    while not leader.releases():
        leader.cycle()
        leader.act()

    assert [pod.startswith("a-headgroup") for pod, _ in leader.releases()] == [True]
    leader.act()
    assert len(leader.releases()) == 4


def test_nothing_is_released_before_the_write_of_the_placement_was_acknowledged() -> None:
    """Also not when the write was done and its answer was lost: then it is read again."""
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    leader = world.leader
    world.kuberay()
    leader.hear_all()
    leader.act()  # the Gang is created
    leader.cycle()

    assert kinds(leader.todo) == [WriteGangStatus]
    assert not leader.releases()
    leader.act(outcome=Outcome.LOST, reads_fail=True)
    assert not leader.releases()
    leader.hear("gangs")
    assert len(leader.releases()) == 1


def test_a_pod_that_is_bound_does_not_make_its_node_look_overfull() -> None:
    """Its reservation ends with its bind, before its own gang or another looks at the node."""
    world = World(node("n1"))
    world.create(gang_of("a", 3), gang_of("b", 3))
    leader = world.leader
    world.kuberay()
    leader.hear_all()
    leader.act_all_but(ReleasePod)
    leader.cycle()
    leader.act_all_but(ReleasePod)
    leader.act()  # the head of a; its workers are on their way
    world.schedule()
    leader.hear("pods")

    assert not [view.key for view in leader.state.known.views.values() if not view.survey.durable]
    world.settle(seconds=60)
    assert world.bound() == {"n1": 8}
    assert len(statuses(leader.log)) == 4


def test_a_gang_waits_for_all_of_its_pods_and_says_how_many_exist() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    world.kuberay()
    world.api.delete(key_of(world.pods("a")[-1]))
    replica = world.leader
    replica.hear_all()
    replica.act_all()
    replica.cycle()
    assert not replica.todo

    world.api.now += 2.0
    replica.tick()
    assert not statuses(replica.log)  # KubeRay is still at work

    world.api.now += GATHER_DELAY
    replica.tick()
    [write] = statuses(replica.log)
    assert write.status["phase"] == "Gathering"
    assert write.status["reason"] == "GangIncomplete"
    assert write.status["message"] == "group workers: 2 of 3 pods exist"


def test_numbers_of_a_waiting_gang_that_move_are_written_once_per_quiet_time() -> None:
    """Eight gangs start beside it, two in each quiet time; what would have fit becomes none."""
    world = World(node("n1"), node("n2"), node("n3", cpu=9), foreign_pod("x", "n3", cpu=8))
    world.create(gang_of("a", 12, cpu=2))
    world.settle()
    for number in range(8):
        world.create(gang_of(f"small-{number}", 1))
        world.settle(seconds=SETTLE_DELAY * 0.5)
    world.settle(seconds=QUIET_DELAY)

    mine = [write.status for write in statuses(world.leader.log) if write.key.name == "a"]
    assert 3 <= len(mine) <= 1 + 5
    assert mine[0]["message"].startswith("8 of 12 workers fit")
    assert mine[-1]["message"].startswith("0 of ")
    busy = len(statuses(world.leader.log))
    world.settle(seconds=10 * QUIET_DELAY)
    assert len(statuses(world.leader.log)) == busy

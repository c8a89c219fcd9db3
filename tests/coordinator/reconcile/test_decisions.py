"""The log has each decision once, with its reason and numbers."""

from prometheus_client import REGISTRY
from structlog.testing import LogCapture

from coordinator.messages.actions import LogDecision, ReleasePod
from coordinator.messages.clock import Patience
from coordinator.shell import decision_log
from kube.api.errors import Forbidden
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, group, node, ray_cluster
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import annotate, apart, in_zones
from tests.coordinator.world import World, name_of
from tests.metrics import total

PATIENCE = Patience()


def lines_of(world: World, what: str = "") -> list[LogDecision]:
    return [each for each in world.leader.logged if what in ("", each.what)]


def whats(world: World) -> list[str]:
    return [each.what for each in world.leader.logged]


# ---- admission and release


def test_a_gang_that_starts_has_a_line_for_its_admission_and_one_for_its_release() -> None:
    world = World(node("n1", cpu=2), node("n2", cpu=2))
    world.create(gang_of("a", 3))
    world.settle(seconds=60)
    admitted, released = lines_of(world)
    assert (admitted.what, released.what) == ("gang admitted", "pods released")
    for line in (admitted, released):
        assert (str(line.gang), line.queue, line.pods) == ("team/a", "default", 4)
        assert line.nodes == ("n1", "n2")
    assert admitted.seconds == 0.0
    assert admitted.reason == "Admitted"


def test_an_admission_is_told_when_it_is_written_and_not_before() -> None:
    """What was decided and never written was no admission."""
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    leader = world.leader
    world.kuberay()
    leader.hear_all()
    leader.act()
    leader.cycle()
    leader.act(outcome=Outcome.UNSENT)
    assert whats(world) == []
    world.settle(seconds=60)
    assert whats(world) == ["gang admitted", "pods released"]


def test_the_wait_counts_from_the_creation_of_the_ray_cluster() -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 3))
    world.settle(seconds=95)
    world.create(node("n2"))
    world.settle(seconds=60)
    [admitted] = lines_of(world, "gang admitted")
    assert admitted.seconds == 95
    assert admitted.started


def test_a_leader_that_came_later_counts_from_the_creation_too() -> None:
    """It was not there; of the creation it knows the second."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 3))
    world.settle(seconds=95)
    world.leader.restart()
    world.elect(0)
    world.create(node("n2"))
    world.settle(seconds=60)
    [admitted] = lines_of(world, "gang admitted")
    assert admitted.seconds is not None
    assert 94 <= admitted.seconds <= 95


def test_surplus_and_replacements_are_admitted_without_a_wait_of_their_gang() -> None:
    world = World(node("n1"))
    workers = group("workers", 2, least=1, most=9)
    world.create(ray_cluster("a", workers, enableInTreeAutoscaling=True))
    world.settle(seconds=60)
    world.leader.logged.clear()
    world.scale("a", 4)
    world.settle(seconds=60)
    more = lines_of(world, "gang admitted")
    assert sum(each.pods for each in more) == 2
    assert [(each.started, each.seconds) for each in more] == [(False, None)] * len(more)
    assert sum(each.pods for each in lines_of(world, "pods released")) == 2


def test_each_wave_of_a_gang_has_its_line() -> None:
    """The workers have affinity to any pod of their cluster, so they are bound before the head."""
    world = in_zones()
    world.create(apart(2))
    world.settle(seconds=60)
    lines = [(each.pods, each.nodes) for each in lines_of(world, "pods released")]
    assert lines == [(2, ("w1",)), (1, ("h1",))]


def test_what_an_opt_out_releases_is_told_without_nodes() -> None:
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 3))
    world.settle(seconds=10)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["metadata"].update(labels={names.OPT_IN: "false"}))
    world.settle(seconds=60)
    [line] = lines_of(world, "pods released")
    assert (line.pods, line.nodes) == (4, ())


# ---- refusals


def test_a_refusal_is_told_once_for_each_reason_with_its_message() -> None:
    world = World(node("n1", cpu=8))
    world.create(foreign_pod("first", "n1", cpu=5))
    world.create(gang_of("a", 3))
    world.settle(seconds=30)
    world.create(foreign_pod("other", "n1", cpu=2))
    world.settle(seconds=4000)
    [refused] = lines_of(world)
    assert (refused.what, refused.reason) == ("gang refused", "InsufficientResources")
    assert refused.message.startswith("2 of 3 workers fit")
    assert refused.seconds is not None
    annotate(world, "a", **{names.MIN_REPLICAS: "?"})
    world.settle(seconds=30)
    assert [each.reason for each in lines_of(world)][1:] == ["Misconfigured"]


def test_a_storm_of_patches_does_not_flood_the_log() -> None:
    world = World(node("n1", cpu=8))
    world.create(foreign_pod("first", "n1", cpu=5))
    world.create(gang_of("a", 3))
    world.settle(seconds=10)
    for number in range(200):
        annotate(world, "a", **({names.MIN_REPLICAS: "?"} if number % 2 else {}))
        world.settle(seconds=0.6)
    assert 2 <= len(lines_of(world)) <= 8


def test_a_new_leader_does_not_tell_again_what_holds() -> None:
    world = World(node("n1", cpu=8))
    world.create(foreign_pod("first", "n1", cpu=5))
    world.create(gang_of("a", 3))
    world.settle(seconds=10)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=4000)
    assert [each.reason for each in lines_of(world)] == ["InsufficientResources"]


# ---- repairs


def test_the_deletion_of_stranded_pods_is_one_line_with_their_node() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    world.grudges.add("n1")
    world.settle(seconds=PATIENCE.bind + 1)
    [deleted] = lines_of(world, "pods deleted")
    assert (deleted.pods, deleted.nodes, deleted.reason) == (3, ("n1",), "Stranded")
    assert deleted.message == "released pods cannot get onto their node"
    assert [each.pods for each in lines_of(world, "placement given up")] == [0]


def test_a_deletion_that_has_to_be_tried_again_is_told_once() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    world.grudges.add("n1")
    world.settle(seconds=PATIENCE.bind - 1)
    world.api.now += 1
    leader = world.leader
    leader.tick()
    for _ in range(3):
        leader.act(outcome=Outcome.BROKEN)
    world.settle(seconds=5)
    assert sum(each.pods for each in lines_of(world, "pods deleted")) == 3


def test_pods_of_a_torn_gang_are_given_up_as_torn() -> None:
    world = World(node("n1", cpu=2), node("n2", cpu=2))
    world.create(gang_of("a", 3))
    leader = world.leader
    world.kuberay()
    leader.hear_all()
    leader.act_all_but(ReleasePod)
    leader.cycle()
    leader.act_all_but(ReleasePod)
    leader.act()
    world.schedule()
    pods = [name_of(pod) for pod in world.pods("a") if not pod["spec"].get("nodeName")]
    for pod in pods:
        world.api.refusals[pod] = Forbidden(403, "Forbidden", "no")
    world.settle(seconds=PATIENCE.torn + 1)
    assert [each.reason for each in lines_of(world, "pods deleted")] == ["Torn"]
    assert [each.reason for each in lines_of(world, "gang refused")] == ["ReleaseRefused"]


def test_room_given_back_because_a_release_is_refused_says_so() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 1))
    world.kuberay()
    for pod in world.pods("a"):
        world.api.refusals[name_of(pod)] = Forbidden(403, "Forbidden", "a policy says no")
    world.settle(seconds=PATIENCE.torn + 1)
    [line] = lines_of(world, "placement given up")
    assert "gave its room back, for a release is refused: 403" in line.message


def test_fences_of_a_new_leader_are_one_line_for_each_gang() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    leader = world.leader
    world.kuberay()
    leader.hear_all()
    leader.act_all_but(ReleasePod)
    leader.cycle()
    leader.act_all_but(ReleasePod)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=30)
    assert [each.pods for each in lines_of(world, "pods fenced")] == [4]
    assert world.status("a")["phase"] == "Running"


# ---- what becomes of a decision


def observed() -> float:
    """How many waits were observed."""
    return total(REGISTRY, "muster_admission_wait_seconds")


def test_a_line_has_no_field_without_a_value_and_one_admission_is_observed(
    lines: LogCapture,
) -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 1))
    world.settle(seconds=10)
    [admitted, released] = lines_of(world)
    decision_log.write(released)
    [line] = lines.entries
    assert line == {
        "event": "pods released",
        "log_level": "info",
        "gang": "team/a",
        "queue": "default",
        "pods": 2,
        "nodes": ("n1",),
    }
    count = observed()
    decision_log.write(admitted)
    assert observed() == count + 1
    decision_log.write(released)
    assert observed() == count + 1

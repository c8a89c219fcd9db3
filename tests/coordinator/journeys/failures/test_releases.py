"""Failures before a released pod is bound."""

from coordinator.messages.actions import DeletePod, FencePod, WriteGangStatus
from kube.api.errors import Forbidden, Invalid
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import gang_of, node, template
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import decided
from tests.coordinator.journeys.failures.worlds import about_to_start
from tests.coordinator.world import World, name_of


def test_a_watch_event_older_than_our_own_answer_changes_nothing() -> None:
    """The answer to the release is known; the watch still tells of the gated pod."""
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    decided(world)
    leader = world.leader
    head = world.api.get(key_of(world.pods("a")[0]))
    world.api.change(head, lambda pod: pod["metadata"]["labels"].update(seen="yes"))
    leader.act()  # refused by the test on the resourceVersion, read again
    world.settle(seconds=1)

    assert world.bound("a") == {"n1": 3}
    assert len({pod for pod, _ in leader.releases()}) == 3


def test_an_echo_of_our_own_release_does_not_release_again() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    decided(world)
    leader = world.leader
    leader.act_all()
    asked = len(leader.releases())
    leader.hear_all()
    world.settle()
    assert len(leader.releases()) == asked == 3


def test_a_pod_that_vanishes_between_decision_and_release_gives_its_slot_to_the_next() -> None:
    world = about_to_start()
    leader = world.leader
    leader.act()  # the head
    victim = world.pods("a")[1]
    world.api.delete(key_of(victim))
    world.settle(seconds=1)

    assert world.bound("a") == {"n1": 3}
    assert name_of(victim) not in [name_of(pod) for pod in world.pods("a")]


def test_a_release_that_the_server_truly_refuses_is_said_and_tried_again_later() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    decided(world)
    head = name_of(world.pods("a")[0])
    world.api.refusals[head] = Invalid(422, "Invalid", "no such thing as a pinned head")
    world.settle(seconds=120)

    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Admitted", "ReleaseRefused")
    assert "no such thing as a pinned head" in status["message"]
    assert world.gated("a") == 3
    tries = sum(pod == head for pod, _ in world.leader.releases())
    assert 9 <= tries <= 20  # 0.05 s doubled up to 15 s

    del world.api.refusals[head]
    world.settle(seconds=20)
    assert world.status("a")["phase"] == "Running"


def test_an_admission_policy_that_forbids_the_release_is_said_too() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    decided(world)
    head = name_of(world.pods("a")[0])
    world.api.refusals[head] = Forbidden(403, "Forbidden", "policy says no")
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "ReleaseRefused"


def test_a_node_that_dies_before_any_release_has_the_whole_gang_decided_anew() -> None:
    world = World(node("n1", cpu=3), node("n2", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    [before] = {node for _, node in world.leader.releases()}
    world.leader.todo.clear()  # as if the process hung before it sent anything
    world.leader.restart()
    world.delete("nodes", before)
    world.elect(0)
    world.settle(seconds=1)

    after = ({"n1", "n2"} - {before}).pop()
    assert world.bound("a") == {after: 3}


def test_a_node_that_dies_under_a_release_with_unknown_end_is_left_with_a_fence() -> None:
    """The release may still arrive: only after the fence may the pod go elsewhere."""
    world = World(node("n1", cpu=3), node("n2", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    leader = world.leader
    [(head, before)] = leader.releases()
    leader.act(outcome=Outcome.HELD)
    world.delete("nodes", before)
    world.settle(seconds=1)

    after = ({"n1", "n2"} - {before}).pop()
    assert [a.pod.metadata.name for a in leader.log if isinstance(a, FencePod)] == [head]
    assert world.bound("a") == {after: 3}
    assert isinstance(leader.client.let_go(), Invalid)


def test_a_node_that_dies_between_release_and_bind_costs_the_pods_pinned_to_it() -> None:
    """A pin cannot be taken back: each is deleted once, comes back gated, and is placed anew."""
    world = World(node("n1", cpu=3), node("n2", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    leader = world.leader
    leader.act_all()
    [before] = {node for _, node in leader.releases()}
    world.delete("nodes", before)
    leader.hear("nodes")
    leader.act_all()
    world.settle(seconds=1)

    assert len([a for a in leader.log if isinstance(a, DeletePod)]) == 3
    assert world.bound("a") == {({"n1", "n2"} - {before}).pop(): 3}


def test_a_released_pod_is_deleted_once_however_late_the_watch_is() -> None:
    world = World(node("n1", cpu=3), node("n2", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    leader = world.leader
    leader.act_all()
    world.delete("nodes", leader.releases()[0][1])
    leader.hear("nodes")
    for _ in range(10):
        leader.act_all()
        world.api.now += 1.0
        leader.tick()
    assert len([a for a in leader.log if isinstance(a, DeletePod)]) == 3


def test_a_cordon_moves_what_was_not_released_yet() -> None:
    world = World(node("n1", cpu=3), node("n2", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    leader = world.leader
    [(_, before)] = leader.releases()
    leader.act(outcome=Outcome.UNSENT)
    cordoned = world.api.get(Key("nodes", "", before))
    world.api.change(cordoned, lambda obj: obj["spec"].update(unschedulable=True))
    world.settle(seconds=5)
    assert world.bound("a") == {({"n1", "n2"} - {before}).pop(): 3}


def test_throttled_and_broken_answers_only_delay() -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    leader = world.leader
    world.kuberay()
    leader.hear_all()
    for outcome in (Outcome.THROTTLED, Outcome.BROKEN, Outcome.UNSENT, Outcome.LOST) * 6:
        leader.cycle()
        if leader.todo:
            leader.act(outcome=outcome)
        world.api.now += 0.5
        leader.tick()
    world.settle(seconds=30)
    assert world.status("a")["phase"] == "Running"
    assert world.bound("a") == {"n1": 3}


def test_a_node_whose_amounts_cannot_be_read_is_not_used() -> None:
    broken = node("broken")
    broken["status"]["allocatable"]["cpu"] = "lots"
    world = World(broken, node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 3}


def test_a_pod_pinned_by_its_own_template_goes_where_that_says_or_nowhere() -> None:
    pin = {"key": "metadata.name", "operator": "In", "values": ["n2"]}
    required = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    head = template(cpu=1, affinity=affinity)
    world = World(node("n1", cpu=64), node("n2", cpu=3))
    world.create(gang_of("a", 2, head=head))
    world.settle(seconds=60)
    heads = [pod for pod in world.pods("a") if "headgroup" in name_of(pod)]
    assert [pod["spec"]["nodeName"] for pod in heads] == ["n2"]
    assert world.status("a")["phase"] == "Running"
    assert len([a for a in world.leader.log if isinstance(a, WriteGangStatus)]) == 2


def test_a_pod_nominated_to_its_own_node_is_counted_once() -> None:
    """Its reservation and its nomination are the same room."""
    world = about_to_start()
    leader = world.leader
    leader.act()
    head = world.pods("a")[0]
    world.api.change(head, lambda pod: pod["status"].update(nominatedNodeName="n1"))
    leader.hear("pods")
    assert leader.state.known.cache.columns().free.min() >= 0
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3}
    assert not [a for a in leader.log if isinstance(a, FencePod | DeletePod)]

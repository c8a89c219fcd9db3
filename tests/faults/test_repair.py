"""A gang ends whole, whatever is taken from it between the verdict and the last bind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kube.objects import names
from testbed.nodes import NodeSpec
from testbed.processes import Process
from testbed.waiting import wait_until
from tests.controlplane.forbidden_releases import forbidden_releases
from tests.controlplane.plot import NODES, Plot, is_held, pin
from tests.controlplane.rayclusters import GANG, Json, gang, group, pod, requests
from tests.faults.calls import is_release, of_other_pods
from tests.faults.chronicle import Chronicle
from tests.faults.crew import STEADY, Crew, Member
from tests.faults.ledger import never_whole, problems, twice_released, unpromised
from tests.faults.proxied import Hold
from tests.replay.test_recordings import replayed

PODS = 3
IMPATIENT = {"BIND_PATIENCE": "0.5", "TORN_PATIENCE": "1"}
PATIENT = {"BIND_PATIENCE": "300", "TORN_PATIENCE": "300"}


@pytest.fixture
def scheduler(plot: Plot) -> Iterator[Process]:
    """kube-scheduler, ended: what is released stays unbound until the test restarts it.

    One that was only frozen would wake with a stale picture, and bind onto room that is taken.
    """
    process = plot.cluster.process("kube-scheduler")
    process.kill()
    yield process
    if not process.running:
        process.restart()
    plot.cluster.wait_healthy("kube-scheduler")


def three_pods() -> Json:
    """A gang of a head and two workers."""
    return gang("three", group(replicas=PODS - 1))


def wait_released(plot: Plot, besides: str = "") -> str:
    """Wait until all pods are pinned to one node other than `besides`, and return it."""

    def released() -> set[str]:
        pods = plot.pods("three")
        pinned = {node for each in pods if not is_held(each) for node in pin(each)}
        whole = len(pods) == PODS and not any(is_held(each) for each in pods)
        return pinned - {plot.node(besides)} if whole else set()

    (node,) = plot.wait(released, "all pods to be released")
    return node.removeprefix(f"{plot.name}-")


def take_room(plot: Plot, node: str, cpus: int) -> None:
    """Bind a foreign pod past kube-scheduler, as somebody who writes the binding himself."""
    plot.create(pod("thief", {"who": "foreign"}, containers=[main(cpus)]))
    target = {"apiVersion": "v1", "kind": "Node", "name": plot.node(node)}
    path = f"/api/v1/namespaces/{plot.name}/pods/thief/binding"
    plot.cluster.api.create(path, {"metadata": {"name": "thief"}, "target": target})


def main(cpus: int) -> Json:
    return {"name": "main", "image": "none", "resources": requests(cpu=str(cpus))}


def with_releases_held(plot: Plot, crew: Crew) -> tuple[Member, Hold]:
    """A gang that is decided, with the releases of its workers on their way."""
    plot.add_equal_nodes(PODS, 1)
    leader = crew.start_leader()
    hold = leader.proxy.hold(lambda call: is_release(call) and "worker" in call.path)
    plot.create(three_pods())
    wait_until(lambda: len(hold.met) >= PODS - 1, "the workers to be released")
    return leader, hold


@pytest.mark.variant
def test_a_gang_deleted_by_hand_is_completed_on_the_very_nodes(
    plot: Plot, chronicle: Chronicle, crew: Crew
) -> None:
    """Without the pins as a second record the released pod would wait alone for the rest."""
    leader, hold = with_releases_held(plot, crew)
    written = plot.status("three")["placement"]
    plot.delete("Gang", "three")
    plot.wait(lambda: plot.status("three").get("placement") == written, "the same placement")
    leader.proxy.lift(hold)
    plot.wait_running("three", PODS)
    assert plot.status("three")["placement"]["podSets"] == written["podSets"]
    assert list(twice_released(chronicle.ledger)) == []


@pytest.mark.long
def test_a_gang_deleted_while_no_replica_leads_is_completed_around_its_pins(
    plot: Plot, chronicle: Chronicle, crew: Crew
) -> None:
    """The next leader has only the pins: the head stays where it is, and nothing goes twice."""
    leader, hold = with_releases_held(plot, crew)
    before = plot.wait(lambda: plot.bound("three", "head"), "the head to be bound")
    leader.process.kill()
    plot.delete("Gang", "three")
    follower, own = crew.start_held_leader(is_release)
    wait_until(lambda: bool(own.met), "the new leader to release the workers")
    leader.proxy.lift(hold)
    wait_until(lambda: all(each.is_over for each in hold.met), "the late writes to be answered")
    follower.proxy.lift(own)
    plot.wait_running("three", PODS)
    assert plot.bound("three", "head") == before
    assert {each.status for each in hold.met} == {422}
    assert not problems(chronicle.ledger, {plot.node(f"n-{i}"): 1 for i in range(PODS)})


@pytest.mark.variant
def test_a_gang_deleted_before_anything_is_pinned_is_fenced_by_the_next_leader(
    plot: Plot, chronicle: Chronicle, crew: Crew
) -> None:
    """Neither record nor pins tell of the release that is on its way; it must fail all the same."""
    plot.add_equal_nodes(PODS, 1)
    leader = crew.start_leader()
    hold = leader.proxy.hold(is_release)
    plot.create(three_pods())
    wait_until(lambda: bool(hold.met), "the head to be released")
    leader.process.kill()
    plot.delete("Gang", "three")
    follower, own = crew.start_held_leader(is_release)
    wait_until(lambda: bool(own.met), "the new leader to release the head")
    leader.proxy.lift(hold)
    wait_until(lambda: all(each.is_over for each in hold.met), "the late write to be answered")
    follower.proxy.lift(own)
    plot.wait_running("three", PODS)
    assert {each.status for each in hold.met} == {422}
    assert not problems(chronicle.ledger, {plot.node(f"n-{i}"): 1 for i in range(PODS)})


@pytest.mark.variant
def test_a_node_that_dies_before_the_bind_is_replaced(
    plot: Plot, chronicle: Chronicle, crew: Crew, scheduler: Process
) -> None:
    """A pin cannot be taken back: pods that are not deleted would wait for the node for ever."""
    plot.add_equal_nodes(2, PODS)
    crew.start_leader()
    plot.create(three_pods())
    dead = wait_released(plot)
    with plot.cluster.api.session() as session:
        session.call("DELETE", f"{NODES}/{plot.node(dead)}")
    assert wait_released(plot, besides=dead) != dead
    scheduler.restart()
    plot.wait_running("three", PODS)
    assert not problems(chronicle.ledger, {plot.node(f"n-{i}"): PODS for i in range(2)})


@pytest.mark.long
def test_the_recording_of_a_run_with_a_lost_pod_gives_the_same_actions_again(
    plot: Plot, crew: Crew, tmp_path: Path
) -> None:
    """What real programs tell, played in another process with other hashes."""
    file = tmp_path / "recording.jsonl"
    plot.add_equal_nodes(2, PODS)
    leader = crew.start_leader({"RECORD": str(file)})
    plot.create(three_pods())
    plot.wait_running("three", PODS)
    lost = next(name_of(each) for each in plot.pods("three") if "worker" in name_of(each))
    plot.delete("Pod", lost)
    plot.wait(lambda: is_replaced(plot, lost), "the lost worker to be replaced")
    plot.wait_running("three", PODS)
    leader.process.stop()
    played = replayed(file, 1)
    assert (played.returncode, played.stderr) == (0, "")
    assert played.stdout.endswith(" actions, all the same\n")


def is_replaced(plot: Plot, lost: str) -> bool:
    """Whether all pods are bound, and none of them is the lost one."""
    bound = [name_of(each) for each in plot.pods("three") if each["spec"].get("nodeName")]
    return len(bound) == PODS and lost not in bound


def name_of(found: Json) -> str:
    name: str = found["metadata"]["name"]
    return name


@pytest.mark.variant
def test_a_gang_whose_room_was_taken_starts_elsewhere(
    plot: Plot, chronicle: Chronicle, crew: Crew, scheduler: Process
) -> None:
    """Only kube-scheduler's word on the pod tells it: without a deadline it waits on."""
    plot.add_equal_nodes(2, PODS)
    crew.start_leader(IMPATIENT)
    plot.create(three_pods())
    taken = wait_released(plot)
    take_room(plot, taken, PODS)
    scheduler.restart()
    plot.wait_running("three", PODS)
    assert set(plot.bound("three").values()) == {"n-0", "n-1"} - {taken}
    assert not list(unpromised(chronicle.ledger))
    assert not list(twice_released(chronicle.ledger))


@pytest.mark.variant
def test_a_node_that_kube_scheduler_refuses_though_it_looks_free_is_not_tried_twice(
    plot: Plot, chronicle: Chronicle, crew: Crew, scheduler: Process
) -> None:
    """The watch of other pods is mute: the thief's room looks free until the end of the test."""
    plot.add_equal_nodes(2, PODS)
    leader = crew.start_leader(IMPATIENT | STEADY | {"TORN_PATIENCE": "300"})
    plot.create(three_pods())
    taken = wait_released(plot)
    leader.proxy.silence(of_other_pods)  # a new term would list them, and could not
    take_room(plot, taken, PODS)
    scheduler.restart()
    plot.wait_running("three", PODS)
    plot.wait_event("three", "BindRefused", f"on {plot.node(taken)}, which is avoided now: 0/")
    assert set(plot.bound("three").values()) == {"n-0", "n-1"} - {taken}
    assert not list(twice_released(chronicle.ledger))


@pytest.mark.long
def test_a_broken_gang_is_stopped_whole_where_its_queue_says_so(
    plot: Plot, chronicle: Chronicle, crew: Crew
) -> None:
    """What is left of it would hold its room for as long as the node is away."""
    plot.add_queue("team", whenBroken="Requeue", timeouts={"slotSeconds": 1})
    plot.add_equal_nodes(2, PODS - 1)
    crew.start_leader(IMPATIENT)
    plot.create(gang("three", group(replicas=PODS - 1), labels=with_name(plot.queue("team"))))
    plot.wait_running("three", PODS)
    (head,) = plot.bound("three", "head").values()
    gone = ({"n-0", "n-1"} - {head}).pop()
    with plot.cluster.api.session() as session:
        session.call("DELETE", f"{NODES}/{plot.node(gone)}")
    plot.wait_event("three", "BelowMinimum", "the gang is stopped whole to wait again")
    plot.wait_phase("three", "Queued", "NeverFits")
    plot.wait(lambda: not plot.bound("three"), "all of its room to be given back")
    plot.add_nodes(NodeSpec("other", cpus=1))
    plot.wait_running("three", PODS)
    assert not list(twice_released(chronicle.ledger))


def with_name(queue: str) -> dict[str, str]:
    """The labels of a gang in a queue."""
    return {**GANG, names.QUEUE: queue}


@pytest.mark.long
def test_a_gang_whose_release_a_policy_refuses_gives_its_room_to_the_next(
    plot: Plot, chronicle: Chronicle, crew: Crew
) -> None:
    """Without an end to it a gang that cannot begin would hold its room for ever."""
    plot.add_node(PODS)
    with forbidden_releases(plot, "three"):
        crew.start_leader(IMPATIENT)
        plot.create(three_pods())
        plot.wait_phase("three", "Admitted", "ReleaseRefused")
        plot.create(gang("next", group(replicas=PODS - 1)))
        plot.wait_running("next", PODS)
        plot.wait_message("three", "gave its room back, for a release is refused")
    assert "placement" not in plot.status("three")
    plot.delete_whole("next")
    plot.wait_running("three", PODS)
    assert not problems(chronicle.ledger, {plot.node("node"): PODS})


def test_a_gang_whose_room_was_taken_gives_back_the_rest_and_starts_whole_later(
    plot: Plot, chronicle: Chronicle, crew: Crew, scheduler: Process
) -> None:
    """Without an end to its patience two thirds of a gang would hold their room for ever."""
    plot.add_node(PODS)
    patient = crew.start_leader(PATIENT)
    plot.create(three_pods())
    take_room(plot, wait_released(plot), 1)
    scheduler.restart()
    plot.wait(lambda: len(plot.bound("three")) == PODS - 1, "all but one of the pods to be bound")
    patient.process.stop()
    crew.start_leader(IMPATIENT)
    plot.wait_phase("three", "Queued")
    plot.wait(lambda: not plot.bound("three"), "the gang to give everything back")
    assert never_whole(chronicle.ledger, {"three": PODS}) == ["three"]
    plot.delete("Pod", "thief")
    plot.wait_running("three", PODS)
    assert not list(unpromised(chronicle.ledger))
    assert not list(twice_released(chronicle.ledger))

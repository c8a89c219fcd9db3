"""Nothing is released on stale data, and all catches up, when the API server is in trouble."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from coordinator.shell.suspicion import STALE
from testbed.nodes import NodeSpec
from testbed.processes import Process
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot, is_held
from tests.controlplane.rayclusters import Json, gang, group, pod, requests
from tests.faults.calls import is_release, not_lease, of_other_pods, of_ray_pods
from tests.faults.chronicle import Chronicle
from tests.faults.crew import STEADY, Crew, Member
from tests.faults.ledger import problems
from tests.faults.proxied import Fault, Match, every

PODS = 3
CATCH_UP_SECONDS = 90.0
"""From the end of a short outage to a gang that runs: some back-off of each watch, and a term.

Many times what it takes on an idle machine, and less than the silence that ends a watch anyway.
"""


def three_pods(name: str = "three") -> Json:
    """A gang of a head and two workers."""
    return gang(name, group(replicas=PODS - 1))


def fill(plot: Plot, name: str) -> None:
    """Let a foreign pod take the one node, and wait until it has."""
    container = {"name": "main", "image": "none", "resources": requests(cpu=str(PODS))}
    plot.create(pod(name, {"who": name}, containers=[container]))
    plot.wait(lambda: "nodeName" in plot.get("Pod", name)["spec"], f"{name} to be bound")


def clear(plot: Plot, name: str) -> None:
    """Take a foreign pod away, and wait until it is gone."""
    plot.delete("Pod", name)
    plot.wait_gone("Pod", name)


def no_trouble(plot: Plot, chronicle: Chronicle) -> bool:
    """Whether no pod was released onto room that was not there, or elsewhere than promised."""
    found = problems(chronicle.ledger, {plot.node("node"): PODS})
    assert found == []
    return not found


def wait_running_soon(plot: Plot, name: str = "three") -> None:
    """Wait until the gang runs, in bounded time."""
    plot.wait(
        lambda: plot.status(name).get("phase") == "Running",
        f"gang {name} to run after an outage",
        CATCH_UP_SECONDS,
    )
    plot.wait_ready(name, PODS)


def wait_gathered(plot: Plot) -> None:
    """Wait until all that the gang needs to be decided is there."""
    plot.wait_pods("three", PODS)
    plot.wait(lambda: "three" in plot.gangs(), "the Gang to be created")


def expect_held(plot: Plot, seconds: float) -> None:
    """See that nothing is released for a while, though a decision takes some milliseconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert all(is_held(each) for each in plot.pods("three"))


def wait_silent(leader: Member, watch: str) -> None:
    """Wait until a watch has heard nothing for so long that no placement is to rest on it."""
    silence = f'muster_watch_silence_seconds{{resource="{watch}"}}'
    wait_until(lambda: leader.value(silence) > STALE, f"the watch of {watch} to be silent")


# --- the server itself


@pytest.fixture
def server(plot: Plot) -> Iterator[Process]:
    """The API server's process; it serves again at the end, whatever the test did to it."""
    process = plot.cluster.process("kube-apiserver")
    yield process
    process.resume()
    if not process.running:
        process.restart()
    plot.cluster.wait_healthy("kube-apiserver")


@pytest.mark.long
def test_a_restarted_server_is_found_again(
    plot: Plot, chronicle: Chronicle, crew: Crew, server: Process
) -> None:
    """A watch that is not opened again would leave the gang waiting for room that is free."""
    plot.add_node(PODS)
    crew.start_leader()
    fill(plot, "filler")
    plot.create(three_pods())
    plot.wait_phase("three", "Queued")
    server.restart()
    plot.cluster.wait_healthy("kube-apiserver")
    clear(plot, "filler")
    plot.wait_running("three", PODS)
    assert no_trouble(plot, chronicle)


def held_release(plot: Plot, crew: Crew) -> tuple[Member, Fault]:
    """Have a leader release a head, and hold the request on its way to the server."""
    plot.add_node(PODS)
    leader = crew.start_leader()
    hold = leader.proxy.hold(is_release)
    plot.create(three_pods())
    wait_until(lambda: bool(hold.met), "the head to be released")
    return leader, hold


def test_a_release_that_a_restart_interrupts_is_completed_once(
    plot: Plot, chronicle: Chronicle, crew: Crew, server: Process
) -> None:
    """The outcome of a write to a dying server is unknown: taken for done, the pod would wait."""
    leader, hold = held_release(plot, crew)
    server.kill()
    leader.proxy.lift(hold)
    server.restart()
    plot.cluster.wait_healthy("kube-apiserver")
    plot.wait_running("three", PODS)
    assert no_trouble(plot, chronicle)


@pytest.mark.variant
def test_a_hung_server_ends_the_term_and_the_next_one_completes(
    plot: Plot, chronicle: Chronicle, crew: Crew, server: Process
) -> None:
    """The release that the hung server still has in hand is executed when it wakes, or fenced."""
    leader, hold = held_release(plot, crew)
    with server.paused():
        leader.proxy.lift(hold)
        wait_until(lambda: not leader.leads, "the term to end")
    plot.wait_running("three", PODS)
    assert no_trouble(plot, chronicle)


# --- the way to the server

OUTAGES = ["410"]
FURTHER = ["429", "500", "cut", "silence"]
"""Outages of which the soak has the last three as well (`tests/soak`)."""


def begin(outage: str, member: Member, match: Match = every) -> Fault:
    """Make the API server unreachable for one coordinator, or a part of it."""
    proxy = member.proxy
    if outage == "cut":
        return proxy.cut(match)
    if outage == "silence":
        return proxy.silence(match)
    fault = proxy.refuse(int(outage), match, retry_after=1 if outage == "429" else 0)
    proxy.cut_streams(match)
    return fault


@pytest.mark.variant
@pytest.mark.parametrize(
    "outage", [*OUTAGES, *(pytest.param(each, marks=pytest.mark.long) for each in FURTHER)]
)
def test_room_that_comes_free_in_an_outage_is_used_after_it(
    plot: Plot, chronicle: Chronicle, crew: Crew, outage: str
) -> None:
    """What happened while no watch listened must be read up, or the gang waits for ever."""
    plot.add_node(PODS)
    leader = crew.start_leader()
    fill(plot, "filler")
    plot.create(three_pods())
    plot.wait_phase("three", "Queued")
    fault = begin(outage, leader)
    wait_until(lambda: not leader.leads, "the term to end")
    clear(plot, "filler")
    leader.proxy.lift(fault)
    wait_running_soon(plot)
    assert no_trouble(plot, chronicle)


@pytest.mark.parametrize(
    "outage",
    ["cut", *(pytest.param(each, marks=pytest.mark.long) for each in ("429", "500", "410"))],
)
def test_nothing_is_decided_while_one_watch_is_down(
    plot: Plot, chronicle: Chronicle, crew: Crew, outage: str
) -> None:
    """All else works and the node looks free; deciding on it would strand the gang there."""
    plot.add_node(PODS)
    leader = crew.start_leader(STEADY)
    fault = begin(outage, leader, of_other_pods)
    fill(plot, "foreign")
    plot.create(three_pods())
    wait_gathered(plot)
    expect_held(plot, 1.0)
    leader.proxy.lift(fault)
    plot.wait_phase("three", "Queued")
    clear(plot, "foreign")
    wait_running_soon(plot)
    assert no_trouble(plot, chronicle)


@pytest.mark.variant
def test_a_new_term_does_not_trust_watches_that_are_silent(
    plot: Plot, chronicle: Chronicle, crew: Crew
) -> None:
    """After an outage the old connections may be dead without a word: only a list can tell.

    The gang and the foreign pod that has the room now are both news; seeing the one without the
    other is the worst.
    """
    plot.add_node(PODS)
    leader = crew.start_leader()
    leader.proxy.freeze()
    fault = leader.proxy.silence()
    wait_until(lambda: not leader.leads, "the term to end")
    fill(plot, "foreign")
    plot.create(three_pods())
    plot.wait_pods("three", PODS)
    leader.proxy.lift(fault)
    leader.wait_leads()
    plot.wait_phase("three", "Queued")
    clear(plot, "foreign")
    wait_running_soon(plot)
    assert no_trouble(plot, chronicle)


@pytest.mark.long
@pytest.mark.parametrize("watch", ["ray pods", pytest.param("other pods", marks=pytest.mark.long)])
def test_a_watch_that_falls_silent_alone_is_soon_opened_again(
    plot: Plot, chronicle: Chronicle, crew: Crew, watch: str
) -> None:
    """All others work, so the term goes on: by itself it would take 150 s until this is noticed."""
    plot.add_node(PODS)
    leader = crew.start_leader(STEADY)
    if watch == "ray pods":
        hold = leader.proxy.hold(is_release)
        plot.create(three_pods())
        wait_until(lambda: bool(hold.met), "the head to be released")
        leader.proxy.freeze(of_ray_pods)
        leader.proxy.lift(hold)
    else:
        fill(plot, "foreign")
        plot.create(three_pods())
        plot.wait_phase("three", "Queued")
        leader.proxy.freeze(of_other_pods)
        clear(plot, "foreign")
        wait_silent(leader, "pods")
        plot.add_nodes(NodeSpec("small", cpus=1))
        plot.create(gang("one", group(replicas=0)))
    lists = leader.value("muster_watch_relists")
    wait_running_soon(plot)
    assert leader.value("muster_watch_reopened") >= 1
    assert (leader.value("muster_watch_relists"), leader.value("muster_leader ")) == (lists, 1)
    assert no_trouble(plot, chronicle)


@pytest.mark.long
def test_a_gang_gets_through_a_server_that_refuses_much(
    plot: Plot, chronicle: Chronicle, crew: Crew
) -> None:
    """Every sort of write is refused now and then: one that is not repeated would end it."""
    plot.add_node(PODS)
    leader = crew.start_leader()
    leader.proxy.refuse(500, not_lease, share=0.3)
    leader.proxy.cut_streams()
    for name in ("one", "two", "three"):
        plot.create(three_pods(name))
        wait_running_soon(plot, name)
        plot.delete("RayCluster", name)
    assert no_trouble(plot, chronicle)


@pytest.mark.variant
def test_answers_that_are_lost_do_no_harm(plot: Plot, chronicle: Chronicle, crew: Crew) -> None:
    """A write that took effect though its answer never came must not be made again elsewhere."""
    plot.add_node(PODS)
    leader = crew.start_leader()
    fault = leader.proxy.lose_answers(lambda call: call.is_write and not_lease(call))
    plot.create(three_pods())
    wait_running_soon(plot)
    assert {each.status for each in fault.met} >= {200, 201}
    assert no_trouble(plot, chronicle)

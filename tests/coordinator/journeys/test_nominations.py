"""Nominations: what they take beside placements, which are written, and which are taken back."""

import copy
from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.gang import nominations as rules
from coordinator.gang import start_window
from coordinator.gang.assumed_pods import assumed_claims
from coordinator.gang.nominations import Guard
from coordinator.gang.pods.nominating import LONGEST_ASTRAY, MOST_IN_FLIGHT
from coordinator.gang.start_window import UNDER_WAY
from coordinator.messages.actions import NominatePod, ReleasePod, WriteGangStatus
from coordinator.messages.events import SchedulerSeen
from coordinator.reconcile.pod_writes.nominations import PAUSE
from coordinator.state.cycle.run_cycle import existing_pods
from coordinator.state_machine import CoordinatorState
from kube.codec.observed_pod import ObservedPod
from kube.objects import names
from scheduling.model.gang import GangKey
from tests.coordinator.api import Key, Outcome
from tests.coordinator.builders import (
    OPTED_IN,
    TEAM,
    Json,
    affinity_to,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.deeds import apart, decided, in_zones, opt, zone
from tests.coordinator.journeys.test_queues import change, queue
from tests.coordinator.journeys.test_volumes import claim, mounts, volume
from tests.coordinator.validate import validate
from tests.coordinator.world import World, is_gated, name_of

APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"x": "y"}}}
        ]
    }
}
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"ray.io/node-type": "worker"}},
        }
    ]
}
PORT = {"containers": [{"name": "main", "ports": [{"containerPort": 1, "hostPort": 99}]}]}
KINDS: dict[str, Json] = {
    "plain": {},
    "apart": {"affinity": APART},
    "together": {"affinity": affinity_to("a")},
    "mounting": mounts(),
    "spread": SPREAD,
    "with a port": PORT,
}


def nominate(world: World, pod: Json, where: str) -> None:
    """Have others, or an earlier leader, write the field."""
    world.api.change(pod, lambda obj: obj["status"].update(nominatedNodeName=where))


def slots_by_name(state: CoordinatorState) -> dict[str, str]:
    """The node of each pod that has a slot and is not bound."""
    return {pod.name: node for pod, node in _promised(state) if not pod.node}


def _promised(state: CoordinatorState) -> list[tuple[ObservedPod, str]]:
    standing = [each for view in state.known.views.values() for each in view.survey.standing]
    given = [pair for each in standing for pair in each.with_slot]
    return [*given, *((pod, pod.settled_on) for each in standing for pod in each.settled)]


def taken(state: CoordinatorState) -> list[object]:
    """Everything of others that a verdict counts: room, pods, disks, claims, quota."""
    cache, index = state.known.cache, state.known.cache.pod_index
    assumed = existing_pods(state.known)
    return [
        {node: dict(used) for node, used in cache.table._used.items() if used},
        {priority: dict(sums) for priority, sums in cache.table._nominated.items()},
        {where: dict(kinds) for where, kinds in index._nodes.items()},
        dict(index._anti_affinity),
        dict(index._nominated),
        {kinds: dict(nodes) for kinds, nodes in assumed._assumed.items()},
        dict(assumed._assumed_anti_affinity),
        dict(cache.storage._mounted),
        dict(cache.storage._users),
        sorted(key for view in state.known.views.values() for key in assumed_claims(view)),
        state.known.quota.gangs,
    ]


@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3),
    workers=st.integers(1, 3),
    sent=st.integers(0, 6),
    left_out=st.integers(0, 3),
)
@pytest.mark.long
def test_room_terms_and_storage_are_the_same_with_nominations_that_repeat_placements(
    kinds: list[str], workers: int, sent: int, left_out: int
) -> None:
    """Of gangs of all sorts, some of whose pods are released, and some of them bound."""
    zones = ((f"n{i}", f"z{i % 2}") for i in range(4))
    world = World(
        *(node(name, cpu=4, labels={"zone": zone}) for name, zone in zones), claim(), volume()
    )
    for name, kind in zip("abc", kinds, strict=False):
        world.create(ray_cluster(name, group("workers", workers, **KINDS[kind])))
    decided(world)
    leader = world.leader
    for _ in range(min(sent, len(leader.todo))):
        leader.act()
    if sent > 3:
        world.schedule()
        leader.hear_all()
        world.api.now += 1.0
        leader.tick()  # has the gangs looked at whose pods went on as decided
    before, where = taken(leader.state), slots_by_name(leader.state)
    for pod in sorted(world.pods(), key=name_of)[left_out:]:
        if name_of(pod) in where:
            nominate(world, pod, where[name_of(pod)])
    leader.hear_all()
    assert slots_by_name(leader.state) == where
    assert taken(leader.state) == before


def test_a_nomination_elsewhere_takes_room_there_until_it_is_taken_back() -> None:
    """kube-scheduler counts it, so a pod that was released there would be refused."""
    world = World(node("n1", cpu=2))
    world.create(ray_cluster("big", group("workers", 3), created=1))
    world.create(ray_cluster("small", group("workers", 1), created=2))
    world.kuberay()
    nominate(world, world.pods("big")[0], "n1")
    leader = world.leader
    leader.hear_all()
    for _ in range(3):
        leader.act_all_but(NominatePod)
        leader.cycle()
    assert leader.state.known.views[GangKey(TEAM, "small")].reservation.placement is None
    [asked] = leader.todo
    assert isinstance(asked, NominatePod)
    assert asked.node == ""
    world.settle(seconds=5)
    assert world.bound("small") == {"n1": 2}


def test_pods_get_the_slots_that_they_are_nominated_to() -> None:
    """Two workers that could change places are nominated the other way round."""
    world = World(node("n1", cpu=1), node("n2", cpu=1), node("n3", cpu=2))
    world.create(ray_cluster("a", group("workers", 2), head=template(cpu=2)))
    decided(world)
    state = world.leader.state
    first, second = (pod for pod in world.pods("a") if "workers" in name_of(pod))
    where = slots_by_name(state)
    assert {where[name_of(first)], where[name_of(second)]} == {"n1", "n2"}
    crossed = {name_of(first): where[name_of(second)], name_of(second): where[name_of(first)]}
    world.leader.todo.clear()
    state.known.views[next(iter(state.known.views))].pod_writes.targets.clear()
    for pod in (first, second):
        nominate(world, pod, crossed[name_of(pod)])
    world.leader.hear_all()
    assert slots_by_name(state).items() >= crossed.items()
    validate(state)


def test_the_pod_of_a_later_wave_that_is_nominated_is_bound_like_others() -> None:
    world = in_zones()
    world.create(apart(1))
    decided(world)
    [head] = [pod for pod in world.pods("a") if "workers" not in name_of(pod)]
    nominate(world, head, "h1")
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Running"
    assert Counter(world.bound("a")) == {"h1": 1, "w1": 1}
    assert not any(is_gated(pod) for pod in world.pods("a"))


def test_a_nominated_pod_that_is_being_deleted_takes_room_beside_its_slot() -> None:
    """Its slot is for its replacement, and kube-scheduler counts both."""
    world = in_zones(cpu=4)
    world.create(apart(1))
    decided(world)
    [head] = [pod for pod in world.pods("a") if "workers" not in name_of(pod)]
    nominate(world, head, "h1")
    world.leader.hear_all()
    used = partial(_cpu_on, world.leader.state, "h1")
    assert used() == 1000
    world.api.change(head, lambda obj: obj["metadata"].update(deletionTimestamp="now"))
    world.leader.hear_all()
    assert used() == 2000


def _cpu_on(state: CoordinatorState, name: str) -> Any:
    return state.known.cache.table._used[name]["cpu"]


# ---- what is written


def guarded(*nodes: Json, **more: Any) -> World:
    return World(*nodes, guard=Guard.NOMINATION, **more)


def nominations(world: World, cluster: str = "") -> list[tuple[str, str]]:
    """Pod and node of every nomination that was asked for so far, of all gangs or of one."""
    asked = [each for each in world.leader.log if isinstance(each, NominatePod)]
    return [(a.pod.metadata.name, a.node) for a in asked if cluster in ("", a.gang.name)]


def field_of(world: World, name: str) -> str:
    status: Json = world.api.get(Key("pods", TEAM, name))["status"]
    return str(status.get("nominatedNodeName", ""))


def pass_time(world: World, seconds: float) -> None:
    world.api.now += seconds
    world.leader.tick()


LAST = f"g{UNDER_WAY}"
"""The gang that waits for its turn to be released."""


def with_a_line(guard: Guard) -> World:
    """As many gangs as are released at one time, none of which is yet, and one that waits.

    That one has lost room before, so that it is nominated after a moment.
    """
    world = World(node("n1", cpu=64), guard=guard)
    for number in range(UNDER_WAY + 1):
        world.create(ray_cluster(f"g{number}", group("workers", 1), created=1 + number))
    decided(world)
    state, last = world.leader.state, GangKey(TEAM, LAST)
    state.known.views[last].repairs.lost_room = True
    state.known.agenda.dirty.add(last)
    world.leader.handle([])
    return world


def test_a_gang_that_has_lost_room_and_waits_for_its_turn_is_nominated_after_a_moment() -> None:
    world = with_a_line(Guard.NOMINATION)
    pass_time(world, PAUSE / 2)
    assert nominations(world) == []
    pass_time(world, PAUSE / 2)
    last = sorted(name_of(pod) for pod in world.pods(LAST))
    assert sorted(nominations(world, LAST)) == [(name, "n1") for name in last]
    world.leader.act_all_but(ReleasePod)
    assert {field_of(world, name) for name in last} == {"n1"}
    world.settle(seconds=5)
    assert len(nominations(world, LAST)) == len(last)
    assert world.status(LAST)["phase"] == "Running"


@pytest.mark.parametrize("guard", [Guard.EXTENDER, Guard.NONE])
def test_without_that_guard_no_pod_is_nominated(guard: Guard) -> None:
    world = with_a_line(guard)
    pass_time(world, 2 * PAUSE)
    assert nominations(world) == []


def test_no_pod_is_nominated_before_the_placement_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "FIRST_RELEASES", 0)
    world = guarded(node("n1"))
    world.create(gang_of("a", 3))
    world.kuberay()
    leader = world.leader
    leader.hear_all()
    leader.act_all()
    leader.cycle()
    [write] = [each for each in leader.todo if isinstance(each, WriteGangStatus)]
    assert write.decides
    assert nominations(world) == []
    leader.act_all_but(NominatePod, ReleasePod)
    assert len(nominations(world)) == 4


def test_of_a_large_gang_the_later_pods_are_nominated_and_then_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "FIRST_RELEASES", 2)
    world = guarded(node("n1"))
    world.create(gang_of("a", 5))
    decided(world)
    assert len(world.leader.releases()) == 1  # the head goes first
    world.settle(seconds=5)
    names = [name for name, _ in nominations(world)]
    order = [
        (type(each), each.pod.metadata.name)
        for each in world.leader.log
        if isinstance(each, NominatePod | ReleasePod)
    ]
    assert len(names) == 4
    for name in names:
        assert order.index((NominatePod, name)) < order.index((ReleasePod, name))
    assert world.bound("a") == {"n1": 6}


def test_a_nomination_that_fails_holds_up_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "FIRST_RELEASES", 0)
    world = guarded(node("n1"))
    world.create(gang_of("a", 3))
    decided(world)
    leader = world.leader
    for _ in range(100):
        bad = bool(leader.todo) and isinstance(leader.todo[0], NominatePod)
        for _ in leader.todo[:1]:
            leader.act(0, Outcome.BROKEN if bad else Outcome.DONE)
    world.settle(seconds=5)
    assert len(nominations(world)) >= 3
    assert world.status("a")["phase"] == "Running"


def test_no_more_than_some_nominations_of_a_gang_are_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "FIRST_RELEASES", 0)
    world = guarded(node("n1", cpu=64))
    world.create(gang_of("a", MOST_IN_FLIGHT + 5))
    world.kuberay()
    world.leader.hear_all()
    world.leader.act_all()
    world.leader.cycle()
    world.leader.act_all_but(NominatePod)
    assert len(nominations(world)) == MOST_IN_FLIGHT
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": MOST_IN_FLIGHT + 6}


def test_pods_of_a_gang_that_count_each_other_are_not_nominated() -> None:
    """One that was nominated by others, or before it had constraints, is so no longer."""
    world = guarded(*(zone(f"{name}1") for name in "hw"))
    world.create(apart(1))
    decided(world)
    [head] = [pod for pod in world.pods("a") if "workers" not in name_of(pod)]
    nominate(world, head, "h1")
    world.leader.hear_all()
    assert nominations(world) == [(name_of(head), "")]
    world.leader.act_all_but(ReleasePod)
    assert field_of(world, name_of(head)) == ""


def held_up(world: World) -> list[str]:
    """Have a gang wait that has a placement, nominated; return the names of its pods."""
    pass_time(world, PAUSE)
    world.leader.act_all_but(ReleasePod)
    return [name_of(pod) for pod in world.pods(LAST)]


def test_a_field_that_others_clear_is_written_again_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start_window, "SLACK", 1000.0)
    world = with_a_line(Guard.NOMINATION)
    name, *_ = held_up(world)
    asked = len(nominations(world, LAST))
    waits = []
    for _ in range(4):
        nominate(world, world.api.get(Key("pods", TEAM, name)), "")
        world.leader.hear_all()
        begun = world.api.now
        for _ in range(500):
            if len(nominations(world, LAST)) == asked:
                pass_time(world, 0.01)
        waits.append(world.api.now - begun)
        asked = len(nominations(world, LAST))
        world.leader.act_all_but(ReleasePod)
        assert field_of(world, name) == "n1"
    assert waits == sorted(waits)
    assert waits[-1] > 4 * waits[0]


def test_another_kube_scheduler_is_told_of_the_nominations_that_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It knows of none. The annotation says that it was told, so no leader tells it twice."""
    monkeypatch.setattr(start_window, "SLACK", 1000.0)
    world = with_a_line(Guard.NOMINATION)
    world.leader.handle([SchedulerSeen("first")])
    pods = held_up(world)
    before = len(nominations(world, LAST))
    versions = {name: _version(world, name) for name in pods}
    world.leader.handle([SchedulerSeen("first")])
    assert len(nominations(world, LAST)) == before
    pass_time(world, 1.0)
    world.leader.handle([SchedulerSeen("second")])
    assert nominations(world, LAST)[before:] == [(name, "n1") for name in pods]
    world.leader.act_all_but(ReleasePod)
    assert all(_version(world, name) > versions[name] for name in pods)
    world.elect(0)
    world.leader.handle([SchedulerSeen("second")])
    pass_time(world, PAUSE)
    assert len(nominations(world, LAST)) == before + len(pods)


def _version(world: World, name: str) -> int:
    return int(world.api.get(Key("pods", TEAM, name))["metadata"]["resourceVersion"])


def test_a_nomination_follows_the_placement() -> None:
    """The node is gone before the release: the gang is placed anew."""
    world = with_a_line(Guard.NOMINATION)
    pods = held_up(world)
    world.create(node("n2", cpu=64))
    world.delete("nodes", "n1")
    leader = world.leader
    leader.hear_all()
    leader.cycle()
    leader.act_all_but(ReleasePod)
    pass_time(world, PAUSE)
    leader.act_all_but(ReleasePod)
    state = leader.state
    assert {field_of(world, name) for name in pods} <= {"", "n2"}
    assert not [pod for pod in state.known.cache.pods.values() if pod.nominated_to == "n1"]


def test_nominations_of_a_gang_that_is_being_deleted_are_taken_back() -> None:
    """A finalizer holds the RayCluster, and with it the pods."""
    world = with_a_line(Guard.NOMINATION)
    pods = held_up(world)
    cluster = world.api.get(Key("rayclusters", TEAM, LAST))
    world.api.change(cluster, lambda obj: obj["metadata"].update(deletionTimestamp="now"))
    world.leader.hear_all()
    world.leader.act_all_but(ReleasePod)
    pass_time(world, 1.0)
    world.leader.act_all_but(ReleasePod)
    assert {field_of(world, name) for name in pods} == {""}


# ---- room that is being made


def with_a_plan(guard: Guard = Guard.NOMINATION) -> World:
    """Gang v ends for p, which waits; the kubelets take their time."""
    world = World(
        node("n1", cpu=4),
        queue("team", preemption={"withinQueue": "LowerPriority"}),
        guard=guard,
        replicas=2,
    )
    labels = {**OPTED_IN, names.QUEUE: "team"}
    world.create(gang_of("v", 3, labels=labels))
    world.settle(seconds=10)
    world.kubelets = lambda: None  # type: ignore[method-assign]
    workers = group("workers", 3, priority=10)
    world.create(ray_cluster("p", workers, head=template(priority=10), labels=labels))
    world.settle(seconds=5)
    old = [pod for pod in world.pods("v") if not is_gated(pod)]
    assert ["deletionTimestamp" in pod["metadata"] for pod in old] == [True] * 4
    assert "placement" not in world.status("p")
    return world


def go_on(world: World) -> None:
    """Have the kubelets work again, and everything come to rest."""
    world.kubelets = lambda: World.kubelets(world)  # type: ignore[method-assign]
    world.settle(seconds=20)


def fields(world: World, cluster: str) -> set[str]:
    return {field_of(world, name_of(pod)) for pod in world.pods(cluster)}


def test_room_that_victims_free_is_kept_for_the_gang_that_they_end_for() -> None:
    """From when the record says that they end; the gang is then bound where it was nominated."""
    world = with_a_plan()
    assert fields(world, "p") == {"n1"}
    log = world.leader.log
    ended = [w for w in log if isinstance(w, WriteGangStatus) and w.status.get("evictions")]
    asked = [each for each in log if isinstance(each, NominatePod)]
    assert log.index(ended[0]) < log.index(asked[0])
    validate(world.leader.state)
    go_on(world)
    assert world.bound("p") == {"n1": 4}
    assert len(nominations(world)) == 4


def test_nominations_that_repeat_a_plan_take_nothing_beside_what_is_held() -> None:
    """Else their own gang would find no room, and have more end."""
    world = with_a_plan()
    state, before = world.leader.state, taken(world.leader.state)
    for pod in world.pods("p"):
        nominate(world, pod, "")
    world.leader.hear_all()
    assert {pod.nominated_to for pod in state.known.cache.pods.values()} == {""}
    assert taken(state) == before


def test_a_new_leader_lets_nominations_stand_until_its_first_cycle_explains_them() -> None:
    world = with_a_plan()
    other = world.elect(1)
    other.handle([])
    assert not [each for each in other.log if isinstance(each, NominatePod)]
    validate(other.state)
    other.cycle()
    other.act_all()
    assert other.state.known.cycles.memory is not None
    assert not [each for each in other.log if isinstance(each, NominatePod)]
    assert fields(world, "p") == {"n1"}


def test_a_new_leader_takes_back_what_its_first_cycle_does_not_explain() -> None:
    """Until that is done, or has failed for long, nothing is released to that node."""
    world = guarded(node("n1", cpu=2))
    world.create(gang_of("big", 3))
    world.kuberay()
    world.leader.hear_all()
    world.leader.act_all()
    world.leader.cycle()
    for pod in world.pods("big"):
        nominate(world, pod, "n1")
    world.create(gang_of("small", 1))
    world.kuberay()
    leader = world.elect(0)
    leader.act_all()
    assert nominations(world) == []
    leader.cycle()
    leader.act_all_but(NominatePod)
    assert nominations(world) == [(name_of(pod), "") for pod in world.pods("big")]
    assert leader.releases() == []
    world.settle(seconds=3)
    assert fields(world, "big") == {""}
    assert world.bound("small") == {"n1": 2}


def test_a_release_waits_no_longer_than_some_seconds_for_a_nomination_to_end() -> None:
    world = guarded(node("n1", cpu=2), node("n2", cpu=2))
    world.create(gang_of("a", 1))
    world.kuberay()
    world.leader.hear_all()
    world.leader.act_all()
    for pod in world.pods("a"):
        nominate(world, pod, "n2")
    leader = world.leader
    leader.hear_all()
    leader.cycle()
    leader.act_all_but(NominatePod, ReleasePod)
    assert slots_by_name(leader.state).keys() == {name_of(pod) for pod in world.pods("a")}
    begun = world.api.now
    for _ in range(100):
        if not leader.releases():
            pass_time(world, 0.1)
            while leader.todo and not leader.releases():
                leader.act(0, Outcome.BROKEN)
    assert LONGEST_ASTRAY <= world.api.now - begun < LONGEST_ASTRAY + 1


def test_a_plan_that_ends_takes_its_nominations_with_it_before_others_are_released() -> None:
    """Another node came, which has room for the gang at once."""
    world = with_a_plan()
    world.create(node("n2", cpu=4))
    leader = world.leader
    leader.hear_all()
    leader.cycle()
    leader.act_all_but(NominatePod)
    mine = {name_of(pod) for pod in world.pods("p")}
    assert nominations(world, "p")[4:] == [(name, "") for name in sorted(mine)]
    assert not mine & {pod for pod, _ in leader.releases()}
    go_on(world)
    assert world.bound("p") == {"n2": 4}
    order = [a for a in leader.log if isinstance(a, NominatePod | ReleasePod)]
    last = max(at for at, each in enumerate(order) if isinstance(each, NominatePod))
    released = (at for at, each in enumerate(order) if isinstance(each, ReleasePod))
    assert min(at for at in released if order[at].pod.metadata.name in mine) > last


def test_nominations_for_a_plan_end_with_the_gang_that_waits() -> None:
    """Its RayCluster is deleted, and a finalizer holds it."""
    world = with_a_plan()
    cluster = world.api.get(Key("rayclusters", TEAM, "p"))
    world.api.change(cluster, lambda obj: obj["metadata"].update(deletionTimestamp="now"))
    world.leader.hear_all()
    world.leader.act_all()
    assert fields(world, "p") == {""}


def test_a_gang_whose_pods_others_count_on_their_way_is_not_nominated() -> None:
    """The spread constraint of another gang of its namespace binds pods that are pinned, too."""
    world = with_a_plan()
    assert fields(world, "p") == {"n1"}
    counting: Json = copy.deepcopy(SPREAD)
    counting["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore"
    world.create(ray_cluster("s", group("workers", 1, **counting), created=5))
    world.settle(seconds=1)
    assert fields(world, "p") == {""}
    world.delete("rayclusters", "s")
    world.settle(seconds=30)
    assert fields(world, "p") == {"n1"}


def test_a_gang_that_is_opted_out_leaves_its_nominations_to_kube_scheduler() -> None:
    world = with_a_plan()
    """Its pods go unpinned; kube-scheduler, which has them now, clears the field as it tries them.

    No release of others waits for that.
    """
    opt(world, "false", "p")
    world.settle(seconds=3)
    assert not any(is_gated(pod) for pod in world.pods("p"))
    assert world.leader.state.known.term.astray == {}
    go_on(world)
    assert world.bound("p") == {"n1": 4}


def test_a_gang_that_stops_asking_is_nominated_for_no_plan() -> None:
    """Its queue becomes inactive; no cycle is needed for that."""
    world = with_a_plan()
    change(world, "team", parent="missing")
    leader = world.leader
    leader.hear_all()
    assert nominations(world, "p")[4:] == [(name_of(pod), "") for pod in world.pods("p")]


def test_pods_of_a_gang_that_is_being_stopped_are_not_nominated() -> None:
    world = with_a_plan()
    pod = next(pod for pod in world.pods("v") if is_gated(pod))
    nominate(world, pod, "n1")
    world.leader.hear_all()
    assert nominations(world, "v") == [(name_of(pod), "")]


def test_a_release_that_is_not_answered_holds_the_whole_gang_up() -> None:
    """Also the pod that is on its way: the write may never arrive."""
    world = guarded(node("n1"))
    world.create(gang_of("a", 3))
    decided(world)
    assert len(world.leader.releases()) == 1
    pass_time(world, PAUSE)
    assert sorted(nominations(world)) == [
        (name, "n1") for name in sorted(map(name_of, world.pods("a")))
    ]


def test_a_gang_that_is_released_pod_by_pod_is_not_nominated() -> None:
    world = guarded(node("n1"))
    world.create(gang_of("a", 5))
    decided(world)
    leader = world.leader
    for _ in range(5):
        pass_time(world, 0.8 * PAUSE)
        leader.act(next(at for at, a in enumerate(leader.todo) if isinstance(a, ReleasePod)))
        leader.hear_all()
    assert nominations(world) == []
    assert world.gated("a") == 1

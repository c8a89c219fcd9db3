"""Ends of gangs in the middle of which a watch breaks, an answer is lost, or the need for it."""

from collections import Counter
from collections.abc import Callable

import pytest

from coordinator.gang.eviction.endings import LAST_PAUSE
from coordinator.messages.actions import (
    DeletePod,
    EvictPod,
    ResumeRayJob,
    SuspendRayJob,
    TryEviction,
    TrySuspension,
    WriteGangStatus,
)
from coordinator.reconcile.eviction_dry_run import AT_ONCE
from kube.objects import names
from tests.coordinator.api import Key, Outcome
from tests.coordinator.builders import OPTED_IN, TEAM, Json, gang_of, group, node, ray_cluster
from tests.coordinator.journeys.test_preemption import (
    IN_TEAM,
    LOWER,
    PDB,
    evicted,
    two_gangs,
    urgent,
    workers_of,
)
from tests.coordinator.journeys.test_queues import queue
from tests.coordinator.journeys.test_stopped_jobs import (
    SHUTDOWN,
    note_on,
    run,
    say,
    sent,
    set_spec,
    state_of,
    with_job,
)
from tests.coordinator.ray_jobs import job_of, ray_job
from tests.coordinator.stopping import (
    act_until,
    choose,
    choose_whole,
    ending,
    go_until,
    names_of,
    out_of_sight,
    parts,
)
from tests.coordinator.world import World, event_of, key

LEAST = names.MIN_REPLICAS


def in_a_team(victim: Json, replicas: int = 1, cpu: int = 5, **rules: object) -> World:
    """Gang v has all of the room, and p comes, which may stop what it needs of it."""
    world = World(
        node("n1", cpu=cpu), queue("team", preemption={**LOWER, **rules}), replicas=replicas
    )
    world.create(victim)
    world.settle(seconds=10)
    assert world.bound("v").total() == cpu
    world.create(urgent("p", 1, labels=IN_TEAM))
    return world


def whole() -> Json:
    """A gang that ends whole."""
    return gang_of("v", 4, labels=IN_TEAM)


def elastic() -> Json:
    """A gang of which two of three surplus replicas are to end."""
    return ray_cluster("v", group("workers", 4), labels=IN_TEAM, annotations={LEAST: "workers=1"})


def asks(world: World, kind: type) -> bool:
    return any(isinstance(each, kind) for each in world.leader.todo)


def writes_its_end(world: World) -> bool:
    """Whether it is to be written that something of v ends."""
    writes = (each for each in world.leader.todo if isinstance(each, WriteGangStatus))
    return any(each.key == key("v") and each.status.get("evictions") for each in writes)


def in_mind(world: World) -> int:
    """How many endings of v the leader has decided."""
    return len(world.leader.state.known.views[key("v")].eviction.endings)


def slots(world: World) -> Counter[str]:
    """How many slots the placement of v that is written has on which node."""
    found: Counter[str] = Counter()
    for pod_set in world.status("v")["placement"]["podSets"]:
        for assignment in pod_set["assignments"]:
            found.update(assignment["nodes"])
    return found


# ---- what is asked for


def test_no_further_dry_run_is_asked_for_after_one_was_refused() -> None:
    world = in_a_team(gang_of("v", 20, labels=IN_TEAM), cpu=21)
    world.api.budgets.update(dict.fromkeys(names_of(world.pods("v")), PDB))
    go_until(world, lambda: asks(world, TryEviction))
    world.leader.act()
    assert sent(world, TryEviction) == AT_ONCE


def test_a_pod_that_ends_anyway_needs_no_dry_run() -> None:
    world = two_gangs()
    world.delete("pods", workers_of(world, "v")[0])
    world.leader.hear_all()
    choose_whole(world, "p", "v")
    assert sent(world, TryEviction) == 3


def test_the_suspension_of_a_rayjob_is_tried_once() -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    with out_of_sight(world):
        pass  # all gangs are looked at
    assert (sent(world, TrySuspension), sent(world, TryEviction)) == (1, 0)


def test_nothing_is_tried_of_a_rayjob_that_would_be_lost() -> None:
    world = with_job()
    choose_whole(world, "p", "job-1")
    assert not world.leader.state.known.term.trials
    assert (sent(world, TrySuspension), sent(world, TryEviction)) == (0, 0)


# ---- a watch is down


def test_no_dry_run_is_asked_for_while_a_watch_is_down() -> None:
    world = in_a_team(gang_of("v", 20, labels=IN_TEAM), cpu=21)
    go_until(world, lambda: asks(world, TryEviction))
    with out_of_sight(world):
        world.leader.act_all()
        assert sent(world, TryEviction) == AT_ONCE
    assert sent(world, TryEviction) == 21
    world.settle(seconds=30)
    assert (world.gated("v"), world.bound("p").total()) == (21, 2)


@pytest.mark.parametrize("victim", [whole, elastic])
def test_nothing_is_decided_to_end_while_a_watch_is_down(victim: Callable[[], Json]) -> None:
    """All dry runs are accepted, and meanwhile the gang goes that they were for."""
    world = in_a_team(victim())
    go_until(world, lambda: asks(world, TryEviction))
    before = names_of(world.pods("v"))
    with out_of_sight(world):
        world.leader.act_all()
        assert (in_mind(world), ending(world, "v")) == (0, [])
        world.delete("rayclusters", "p")
        world.leader.hear("rayclusters")
        assert world.leader.state.known.term.trials, "they are settled once all is seen"
    world.settle(seconds=60)
    assert (evicted(world), names_of(world.pods("v"))) == ([], before)
    assert not world.leader.state.known.term.trials


@pytest.mark.parametrize("victim", [whole, elastic])
def test_what_is_to_end_is_not_evicted_and_not_undone_while_a_watch_is_down(
    victim: Callable[[], Json],
) -> None:
    world = in_a_team(victim())
    go_until(world, lambda: writes_its_end(world))
    before = names_of(world.pods("v"))
    with out_of_sight(world):
        world.delete("rayclusters", "p")
        world.leader.hear("rayclusters")
        world.leader.act_all()
        assert evicted(world) == []
        assert (in_mind(world), len(ending(world, "v"))) == (1, 1)
    world.settle(seconds=60)
    assert (evicted(world), names_of(world.pods("v"))) == ([], before)
    assert (ending(world, "v"), world.status("v")["phase"]) == ([], "Running")
    assert slots(world) == {"n1": 5}


@pytest.mark.parametrize(("victim", "left"), [(whole, 5), (elastic, 2)])
def test_what_was_to_end_when_a_watch_broke_ends_once_it_is_back(
    victim: Callable[[], Json], left: int
) -> None:
    world = in_a_team(victim())
    go_until(world, lambda: evicted(world))
    world.leader.act()
    with out_of_sight(world):
        asked = len(evicted(world))
        world.controllers()
        for plural in ("gangs", "rayclusters"):
            world.leader.hear(plural)
        world.leader.act_all()
        assert len(evicted(world)) == asked
    world.settle(seconds=30)
    assert (world.gated("v"), world.bound("p").total()) == (left, 2)
    assert ending(world, "v") == []


def test_no_rayjob_is_resumed_while_a_watch_is_down() -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: note_on(world) is not None)
    with out_of_sight(world):
        for _ in range(10):
            world.controllers()
            world.leader.hear("rayjobs")
            world.leader.act_all()
        assert (state_of(world), sent(world, ResumeRayJob)) == ("Suspended", 0)
    world.settle(seconds=10)
    assert (state_of(world), sent(world, ResumeRayJob)) == ("Initializing", 1)


# ---- an answer is never heard, or came to nothing


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.HELD])
def test_a_gang_of_which_a_pod_may_have_been_evicted_ends_whole(outcome: Outcome) -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: evicted(world))
    before = set(names_of(world.pods("v")))
    for _ in evicted(world):
        at = next(at for at, each in enumerate(leader.todo) if isinstance(each, EvictPod))
        leader.act(at, outcome)
        outcome = Outcome.UNSENT  # all others
    world.delete("rayclusters", "p")
    world.settle(seconds=LAST_PAUSE)
    while leader.client.held:
        leader.client.let_go()
    world.settle(seconds=LAST_PAUSE)
    assert not before & set(names_of(world.pods("v")))
    assert (world.status("v")["phase"], ending(world, "v")) == ("Running", [])


def test_a_gang_of_which_no_eviction_was_sent_goes_on() -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: evicted(world))
    before = names_of(world.pods("v"))
    while asks(world, EvictPod):
        at = next(at for at, each in enumerate(leader.todo) if isinstance(each, EvictPod))
        leader.act(at, Outcome.UNSENT)
    world.delete("rayclusters", "p")
    world.settle(seconds=LAST_PAUSE)
    assert (names_of(world.pods("v")), ending(world, "v")) == (before, [])


def test_a_gang_ends_whole_whose_first_eviction_is_under_way_when_the_other_gang_goes() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    act_until(world, lambda: evicted(world))
    before = set(names_of(world.pods("v")))
    world.delete("rayclusters", "p")
    world.leader.hear_all()
    with out_of_sight(world):
        pass  # all gangs are looked at
    assert in_mind(world) == 1
    world.settle(seconds=60)
    assert not before & set(names_of(world.pods("v")))
    assert (world.status("v")["phase"], world.bound("v")) == ("Running", {"n1": 4})


def test_a_pod_whose_eviction_was_not_refused_is_evicted_again_and_not_deleted() -> None:
    world = in_a_team(whole(), deleteAfterSeconds=30)
    leader = world.leader
    go_until(world, lambda: evicted(world))
    while leader.todo:
        leader.act(0, Outcome.UNSENT)
    for _ in range(100):
        world.api.now += 1
        leader.tick()
        while leader.todo:
            leader.act(0, Outcome.UNSENT)
    assert len(evicted(world)) > 4
    world.settle(seconds=LAST_PAUSE)
    assert world.gated("v") == 5
    assert not any(isinstance(each, DeletePod) for each in leader.log)


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.HELD])
def test_a_rayjob_that_may_have_been_suspended_ends_whole_and_is_resumed(outcome: Outcome) -> None:
    world = with_job(**SHUTDOWN)
    leader = world.leader
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: asks(world, SuspendRayJob))
    at = next(at for at, each in enumerate(leader.todo) if isinstance(each, SuspendRayJob))
    leader.act(at, outcome)
    world.delete("rayclusters", "p")
    leader.hear("rayclusters")
    leader.act_all_but(SuspendRayJob)
    assert ending(world, "job-1"), "it may be suspended"
    world.settle(seconds=LAST_PAUSE)
    while leader.client.held:
        leader.client.let_go()
    world.settle(seconds=LAST_PAUSE)
    assert (state_of(world), note_on(world)) == ("Initializing", None)
    assert not job_of(world.api, "job")["spec"].get("suspend")
    assert world.status("job-2")["phase"] == "Running"


def test_a_rayjob_whose_suspension_was_not_sent_goes_on_where_it_is_needed_no_more() -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: asks(world, SuspendRayJob))
    at = next(at for at, each in enumerate(world.leader.todo) if isinstance(each, SuspendRayJob))
    world.leader.act(at, Outcome.UNSENT)
    world.delete("rayclusters", "p")
    world.settle(seconds=LAST_PAUSE)
    assert (state_of(world), ending(world, "job-1")) == ("Running", [])
    assert sent(world, SuspendRayJob) == 1


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.HELD])
def test_a_resumption_of_unknown_outcome_comes_to_pass_once(outcome: Outcome) -> None:
    world = with_job(**SHUTDOWN)
    leader = world.leader
    choose_whole(world, "p", "job-1")
    while not asks(world, ResumeRayJob):
        world.controllers()
        leader.hear_all()
        leader.act_all_but(ResumeRayJob)
    at = next(at for at, each in enumerate(leader.todo) if isinstance(each, ResumeRayJob))
    leader.act(at, outcome)
    world.settle(seconds=LAST_PAUSE)
    while leader.client.held:
        leader.client.let_go()
    set_spec(world, suspend=True)  # a person wants it suspended from now on
    world.settle(seconds=LAST_PAUSE)
    assert (state_of(world), note_on(world)) == ("Suspended", None)
    assert sent(world, ResumeRayJob) == (1 if outcome is Outcome.LOST else 2)


# ---- the need for it is gone at the very moment


def vanish(world: World) -> None:
    world.delete("rayclusters", "p")


def suspend(world: World) -> None:
    world.edit("p", suspend=True)


def be_deleted(world: World) -> None:
    cluster = world.api.get(Key("rayclusters", TEAM, "p"))
    world.api.hold(cluster, "test/finalizer")
    world.delete("rayclusters", "p")


@pytest.mark.parametrize("goes", [vanish, suspend, be_deleted])
def test_a_gang_goes_on_where_the_news_of_the_other_comes_with_the_answer_to_the_write(
    goes: Callable[[World], None],
) -> None:
    """The other gang, which is younger, was not looked at yet when this one is."""
    world = in_a_team(whole())
    leader = world.leader
    go_until(world, lambda: writes_its_end(world))
    before = names_of(world.pods("v"))
    goes(world)
    write = next(each for each in leader.todo if isinstance(each, WriteGangStatus))
    leader.todo.remove(write)
    answer = leader.carried_out(write, Outcome.DONE)
    news = leader.watch.queues["rayclusters"]
    heard = (event_of(each, leader._reduce) for each in news)
    leader.handle([*answer, *(event for event in heard if event is not None)])
    news.clear()
    world.settle(seconds=60)
    assert (evicted(world), names_of(world.pods("v"))) == ([], before)
    assert ending(world, "v") == []


def test_nothing_is_decided_to_end_for_a_gang_that_is_gone_when_the_last_dry_run_is_over() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    world.delete("rayclusters", "p")
    world.leader.hear("rayclusters")
    world.leader.act_all()
    assert (in_mind(world), ending(world, "v")) == (0, [])
    assert not world.leader.state.known.term.trials


def test_no_gang_ends_for_one_that_got_enough_room_as_another_went() -> None:
    """The trial was of two gangs; one of them is deleted meanwhile."""
    world = World(node("n1", cpu=4))
    world.create(gang_of("v", 1), gang_of("w", 1))
    world.settle(seconds=10)
    world.create(urgent("p", 3))
    world.settle(seconds=10)
    choose_whole(world, "p", "v", "w")
    world.delete("rayclusters", "w")
    world.leader.hear("rayclusters")
    world.leader.act_all()
    assert not world.leader.state.known.term.trials
    assert ending(world, "v") == []


# ---- slots of surplus that was to end


def test_surplus_that_ends_is_not_chosen_again_before_its_end_is_written() -> None:
    """Chosen twice it would lose two slots, and the second one is that of another replica."""
    world = in_a_team(elastic())
    leader = world.leader
    go_until(world, lambda: writes_its_end(world))
    for _ in range(3):
        leader.state.known.agenda.cycle_wanted = True
        leader.cycle()
        leader.act_all_but(WriteGangStatus)
    assert (in_mind(world), sent(world, TryEviction)) == (1, 2)
    world.settle(seconds=30)
    assert (world.bound("v"), slots(world)) == ({"n1": 3}, {"n1": 3})
    world.delete("rayclusters", "p")
    world.settle(seconds=30)
    assert (world.bound("v"), slots(world)) == ({"n1": 5}, {"n1": 5})


def test_surplus_that_stays_after_all_has_its_slots_again_under_a_new_leader() -> None:
    world = in_a_team(elastic(), replicas=2)
    go_until(world, lambda: ending(world, "v"))
    assert slots(world) == {"n1": 3}
    world.leader.resign()
    world.delete("rayclusters", "p")
    world.collect_garbage()
    world.elect(1)
    world.settle(seconds=30)
    assert (world.bound("v"), slots(world)) == ({"n1": 5}, {"n1": 5})
    lost = workers_of(world, "v")[0]
    world.delete("pods", lost)
    world.settle(seconds=30)
    assert (world.bound("v"), world.gated("v")) == ({"n1": 5}, 0)


def test_a_gang_that_is_not_stopped_after_all_has_the_slots_of_its_surplus_again() -> None:
    """Its surplus was to end for one gang, and then all of it for another: both go."""
    world = World(node("n1", cpu=5))
    world.create(ray_cluster("v", group("workers", 4), annotations={LEAST: "workers=1"}))
    world.settle(seconds=10)
    world.create(urgent("p", 1), urgent("q", 2))
    world.settle(seconds=10)
    choose(world, "p", *parts(world, "v")[1:3])
    world.leader.act_all_but(WriteGangStatus)
    choose_whole(world, "q", "v")
    world.leader.act_all_but(WriteGangStatus)
    assert in_mind(world) == 1
    for name in ("p", "q"):
        world.delete("rayclusters", name)
    world.settle(seconds=30)
    assert (evicted(world), ending(world, "v")) == ([], [])
    assert (world.bound("v"), slots(world)) == ({"n1": 5}, {"n1": 5})


# ---- RayJobs that come to another state meanwhile


def test_a_rayjob_that_would_be_lost_since_its_end_was_written_goes_on() -> None:
    """Its last retry began between the write and the first eviction."""
    world = with_job(backoffLimit=1)
    choose_whole(world, "p", "job-1")
    before = names_of(world.pods("job-1"))
    while not any(
        isinstance(each, WriteGangStatus) and each.status.get("evictions")
        for each in world.leader.todo
    ):
        world.leader.act()
        world.leader.hear_all()
    say(world, failed=1)
    world.leader.hear("rayjobs")
    world.settle(seconds=60)
    assert (sent(world, EvictPod), ending(world, "job-1")) == (0, [])
    assert names_of(world.pods("job-1")) == before


@pytest.mark.parametrize("state", ["Complete", "Failed", "ValidationFailed"])
def test_a_rayjob_that_ends_as_it_is_suspended_loses_the_note_and_its_pods_go(state: str) -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: note_on(world) is not None)
    say(world, jobDeploymentStatus=state)
    world.settle(seconds=30)
    assert note_on(world) is None
    assert sent(world, ResumeRayJob) == 1
    assert world.status("p")["phase"] == "Running"


@pytest.mark.parametrize("state", ["Complete", "Failed", "Retrying"])
def test_the_gang_of_a_rayjob_that_has_ended_is_stopped_by_evictions(state: str) -> None:
    world = with_job()
    say(world, jobDeploymentStatus=state)
    world.leader.hear("rayjobs")
    assert parts(world, "job-1")[0].kept_because == ""
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: evicted(world))
    assert sent(world, SuspendRayJob) == 0


def test_surplus_of_a_rayjob_that_would_be_lost_whole_ends() -> None:
    labels = {**OPTED_IN, names.QUEUE: "team"}
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    annotations = {LEAST: "workers=1"}
    world.create(ray_job("job", gang_of("", 3, labels=labels, annotations=annotations)))
    world.settle(seconds=10)
    run(world)
    world.create(urgent("p", 1, labels=IN_TEAM))
    world.settle(seconds=30)
    assert (world.bound("job-1").total(), world.gated("job-1")) == (2, 2)
    assert world.status("p")["phase"] == "Running"

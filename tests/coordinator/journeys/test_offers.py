"""GangOffers: room is offered and kept, and what is accepted alone starts in it."""

from typing import Any

import pytest

from coordinator.messages.actions import (
    DeleteGang,
    EvictPod,
    ReleasePod,
    SuspendRayCluster,
    WriteGangStatus,
)
from coordinator.messages.offer_actions import DeleteCreated, HoldOffer, StartOffer, WriteOffer
from kube.objects import names
from kube.objects.clusters.gang_offer import FINALIZER
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, foreign_pod, gang_of, node
from tests.coordinator.held import held, is_suspended
from tests.coordinator.journeys.queues.test_order import aged
from tests.coordinator.journeys.queues.worlds import gang_in, queue
from tests.coordinator.offers import (
    accept,
    answer,
    created_for,
    lease,
    member,
    offer,
    offer_of,
    started,
)
from tests.coordinator.world import World, is_gated

LOWER = {"withinQueue": "LowerPriority"}
HIGH = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}


def gangs(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in world.api.all("gangs")]


def nodes_of(world: World, cluster: str) -> list[str]:
    return [pod["spec"].get("nodeName", "") for pod in world.pods(cluster)]


def exists(world: World, plural: str, name: str) -> bool:
    return Key(plural, TEAM, name) in world.api.objects


# ---- asked


def test_room_is_offered_for_a_whole_gang_and_nothing_of_it_exists() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    assert answer(world)["phase"] == "Offered"
    assert answer(world)["offeredAt"].startswith("2026-01-01T00:00:0")
    assert FINALIZER in offer_of(world)["metadata"]["finalizers"]
    assert not list(world.api.all("rayclusters"))
    assert not world.pods()
    owner = world.gang("gangoffer.a-1")["metadata"]["ownerReferences"][0]
    assert (owner["apiVersion"], owner["kind"], owner["name"]) == (
        names.API_VERSION,
        "GangOffer",
        "a-1",
    )


def test_what_does_not_fit_on_nodes_is_told_in_numbers_and_offered_when_there_is_room() -> None:
    world = member(foreign_pod("big", "n1", cpu=3), offer("a-1", gang_of("a", 3)))
    said = answer(world)
    assert (said["phase"], said["reason"]) == ("Asked", "InsufficientResources")
    assert "fit" in said["message"]
    assert "cpu" in said["message"]

    world.api.remove(Key("pods", "others", "big"))
    world.settle(seconds=2)
    assert answer(world)["phase"] == "Offered"
    assert "reason" not in answer(world)


def test_room_that_is_offered_is_kept_from_other_gangs_and_closed_after_a_minute() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    world.create(gang_of("b", 3))
    world.settle(seconds=50)
    assert all(is_gated(pod) for pod in world.pods("b"))
    assert answer(world)["phase"] == "Offered"
    world.settle(seconds=20)
    said = answer(world)
    assert (said["phase"], said["reason"]) == ("Closed", "NotAccepted")
    assert set(nodes_of(world, "b")) == {"n1"}
    assert "gangoffer.a-1" not in gangs(world)

    world.delete("rayclusters", "b")
    world.settle(seconds=100)
    assert answer(world)["phase"] == "Closed"  # for good


def test_of_two_offers_for_one_room_the_second_waits() -> None:
    world = member(offer("a-1", gang_of("a", 3)), offer("b-1", gang_of("b", 3)))
    assert sorted(answer(world, name)["phase"] for name in ("a-1", "b-1")) == ["Asked", "Offered"]


def test_an_offer_that_waits_never_ages() -> None:
    """Gangs of the member beside it do; what ages keeps all others of its queue waiting."""
    team = queue("team", cpu=100, ageing={"maxWaitSeconds": 10})
    in_queue = {names.OPT_IN: "true", names.QUEUE: "team"}
    world = member(team, foreign_pod("big", "n1", cpu=3))
    world.create(offer("a-1", gang_of("a", 3, labels=in_queue)))
    world.create(gang_of("b", 3, labels=in_queue))
    world.settle(seconds=100)
    assert answer(world)["reason"] == "InsufficientResources"
    assert (aged(world, "b"), aged(world, "gangoffer.a-1")) == (True, False)


@pytest.mark.parametrize("rule", ["Strict", "Backfill"])
@pytest.mark.parametrize(("cpu", "quota"), [(4, 100), (100, 4)], ids=["room", "quota"])
def test_an_offer_that_waits_holds_no_gang_up_and_stops_none(
    rule: str, cpu: int, quota: int
) -> None:
    team = queue("team", cpu=quota, whenBlocked=rule, preemption=LOWER)
    world = World(node("n1", cpu=cpu), team, HIGH)
    in_queue = {names.OPT_IN: "true", names.QUEUE: "team"}
    world.create(gang_of("first", 1, labels=in_queue))
    asked = gang_of("a", 3, labels=in_queue)
    for each in (asked["spec"]["headGroupSpec"], *asked["spec"]["workerGroupSpecs"]):
        each["template"]["spec"] |= {"priorityClassName": "high", "priority": 7}
    world.create(offer("a-1", asked))
    world.settle(seconds=5)
    assert answer(world)["phase"] == "Asked"
    world.create(gang_of("second", 1, labels=in_queue))
    world.settle(seconds=5)
    assert set(nodes_of(world, "second")) == set(nodes_of(world, "first")) == {"n1"}
    assert not [each for each in world.leader.log if isinstance(each, EvictPod)]


def test_an_offer_that_waits_holds_no_other_offer_up() -> None:
    labels = {names.OPT_IN: "true", names.QUEUE: "team"}
    large, small = gang_of("a", 8, labels=labels), gang_of("b", 1, labels=labels)
    team = queue("team", whenBlocked="Strict")
    world = World(node("n1", cpu=4), foreign_node(), team)
    world.create(foreign_pod("big", "n2", cpu=8), offer("a-1", large))
    world.settle(seconds=5)
    world.create(offer("b-1", small))
    world.settle(seconds=5)
    assert (answer(world, "a-1")["phase"], answer(world, "b-1")["phase"]) == ("Asked", "Offered")


def foreign_node() -> Json:
    """A second node, so that a gang of nine would fit but for what is there."""
    return node("n2", cpu=8)


def test_quota_that_an_offer_waits_for_is_lent_on() -> None:
    """A gang that waits for what its own queue has lent would have it back first."""
    queues = (queue("all"), queue("x", cpu=4, parent="all"), queue("y", cpu=0, parent="all"))
    world = World(node("n1", cpu=100), *queues)
    world.create(gang_in("y", "b", 1))
    world.settle(seconds=5)
    world.create(offer("a-1", gang_in("x", "a", 3)))
    world.settle(seconds=5)
    assert answer(world)["phase"] == "Asked"
    world.create(gang_in("y", "c", 1))
    world.settle(seconds=5)
    assert nodes_of(world, "b") == nodes_of(world, "c") == ["n1"] * 2


def test_an_offer_does_not_age_and_asks_for_no_nodes() -> None:
    rules = {"className": "check.example", "backoffSeconds": 60}
    team = queue("team", ageing={"maxWaitSeconds": 10, "maxPasses": 1}, provisioning=rules)
    world = World(node("n1", cpu=4), team)
    labels = {names.OPT_IN: "true", names.QUEUE: "team"}
    world.create(gang_of("first", 1, labels=labels), offer("a-1", gang_of("a", 3, labels=labels)))
    world.settle(seconds=60)
    assert answer(world)["phase"] == "Asked"
    assert not world.leader.state.known.cycles.ages.aged
    world.create(gang_of("second", 1, labels=labels))
    world.settle(seconds=10)
    assert set(nodes_of(world, "second")) == {"n1"}
    assert not list(world.api.all("provisioningrequests"))


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"workerGroupSpecs": "none"}, "spec.template.spec: Expected `array"),
        ({"headGroupSpec": {"template": {"spec": {"containers": []}}}}, "spec.containers"),
    ],
)
def test_a_template_that_cannot_be_used_is_told(spec: Json, said: str) -> None:
    cluster = gang_of("a", 1)
    cluster["spec"] |= spec
    world = member(offer("a-1", cluster))
    assert answer(world)["phase"] == "Asked"
    assert said in answer(world)["message"]


def test_a_name_that_is_taken_is_refused_and_its_object_left_alone() -> None:
    world = member(gang_of("a", 1), cpu=8)
    world.create(offer("a-1", gang_of("a", 3)))
    world.settle(seconds=5)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "NameTaken")
    assert exists(world, "rayclusters", "a")


def test_an_offer_that_is_created_accepted_is_never_started() -> None:
    world = member(offer("a-1", gang_of("a", 3), acceptedBy=1))
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "AcceptedTooEarly")


# ---- accepted


def test_what_is_accepted_is_started_and_its_raycluster_takes_the_room_over() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    accept(world)
    world.create(gang_of("b", 3))  # which would fit but for the offer
    world.settle(seconds=1)
    assert answer(world)["phase"] == "Started"
    world.create(created_for(world, gang_of("a", 3)))
    world.settle(seconds=5)
    assert nodes_of(world, "a") == ["n1"] * 4
    assert world.status("a")["phase"] == "Running"
    assert gangs(world) == ["a", "b"]
    world.settle(seconds=200)
    assert answer(world)["phase"] == "Started"
    assert not [each for each in world.leader.log if isinstance(each, SuspendRayCluster)]


def test_what_is_created_for_an_offer_that_is_not_started_waits_and_is_deleted_with_it() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    world.create(created_for(world, gang_of("a", 3)))  # sent by an earlier leader, say
    world.settle(seconds=5)
    assert all(is_gated(pod) for pod in world.pods("a"))
    assert "GangOffer a-1" in world.status("a")["message"]
    world.settle(seconds=70)
    assert answer(world)["phase"] == "Closed"
    assert not exists(world, "rayclusters", "a")


def test_what_comes_before_the_start_takes_the_room_over_once_it_is_started() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    world.create(created_for(world, gang_of("a", 3)))
    world.settle(seconds=5)
    accept(world)
    world.settle(seconds=5)
    assert nodes_of(world, "a") == ["n1"] * 4


def test_a_raycluster_that_the_webhook_holds_takes_the_room_over_and_is_resumed_for_it() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, held(gang_of("a", 3))))
    world.create(gang_of("b", 3))
    world.settle(seconds=10)
    assert nodes_of(world, "a") == ["n1"] * 4
    assert not is_suspended(world.api, "a")


def test_one_of_another_name_that_names_the_offer_as_its_owner_never_starts() -> None:
    world = member(offer("a-1", gang_of("a", 3)), cpu=8)
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, gang_of("other", 3)))
    world.settle(seconds=5)
    assert not any(nodes_of(world, "other"))
    assert "is not Started for an object of this name" in world.status("other")["message"]


def test_what_is_created_for_an_offer_that_is_gone_never_starts() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    late = created_for(world, gang_of("a", 3))
    world.delete("gangoffers", "a-1")
    world.settle(seconds=5)
    assert not exists(world, "gangoffers", "a-1")
    world.create(late)
    world.leader.hear_all()
    world.settle(seconds=5)
    assert not any(nodes_of(world, "a"))


def test_what_an_older_leader_accepted_is_not_started_and_closed() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    world.create(lease(2))
    accept(world, term=1)
    world.settle(seconds=5)
    assert answer(world)["phase"] == "Offered"
    world.settle(seconds=60)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "OtherLeader")


def test_the_newest_leader_may_accept_what_an_older_one_did() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    world.create(lease(2))
    accept(world, term=1)
    world.settle(seconds=2)
    accept(world, term=2)
    world.settle(seconds=5)
    assert answer(world)["phase"] == "Started"


def test_an_acceptance_of_a_version_that_was_closed_fails() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    accept(world)
    world.settle(seconds=100)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "NotCreated")


def test_a_gang_that_is_deleted_closes_its_offer_for_good() -> None:
    world = started()
    world.delete("rayclusters", "a")
    world.settle(seconds=10)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "Ended")
    world.create(created_for(world, gang_of("a", 3)))
    world.settle(seconds=10)
    assert not exists(world, "rayclusters", "a")
    assert answer(world)["phase"] == "Closed"


def test_it_is_closed_as_soon_as_the_last_pod_is_gone_that_outlasts_the_gang() -> None:
    world = started()
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.delete("rayclusters", "a")
    world.settle(seconds=30)
    assert (answer(world)["phase"], len(world.pods("a"))) == ("Started", 4)
    del world.kubelets
    world.settle(seconds=5)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "Ended")


def test_what_a_new_leader_of_the_manager_creates_anew_is_deleted_and_never_starts() -> None:
    """It does not know that the first was there; its room may be another gang's by then."""
    world = started()
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.delete("rayclusters", "a")
    world.settle(seconds=5)
    world.create(created_for(world, gang_of("a", 3)))
    world.settle(seconds=5)
    del world.kubelets
    world.settle(seconds=10)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "Ended")
    assert not exists(world, "rayclusters", "a")
    assert not world.pods("a")


def test_a_withdrawn_offer_goes_once_no_pod_of_its_gang_is_left() -> None:
    world = started()
    world.delete("gangoffers", "a-1")
    world.settle(seconds=10)
    assert not exists(world, "gangoffers", "a-1")
    assert not exists(world, "rayclusters", "a")
    pods = [at for at, each in enumerate(world.api.history) if each.key.plural == "pods"]
    ends = [
        at
        for at, each in enumerate(world.api.history)
        if each.key.plural == "gangoffers" and each.new is None
    ]
    assert max(pods) < ends[0]


def test_each_write_waits_until_the_watch_has_told_of_the_one_before() -> None:
    world = started()
    world.delete("gangoffers", "a-1")
    world.settle(seconds=10)
    writes = [each for each in world.leader.log if isinstance(each, WriteOffer | HoldOffer)]
    phases = [each.status["phase"] for each in writes if isinstance(each, WriteOffer)]
    assert phases == ["Offered"]
    assert len(writes) == 3, "its finalizer is set, and taken off once it is over"


def test_a_withdrawn_offer_that_others_hold_too_is_closed() -> None:
    made = offer("a-1", gang_of("a", 3))
    made["metadata"]["finalizers"] = [FINALIZER, "example.com/other"]
    world = member(made)
    world.delete("gangoffers", "a-1")
    world.settle(seconds=5)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "Withdrawn")
    assert offer_of(world)["metadata"]["finalizers"] == ["example.com/other"]


def test_of_an_offer_the_manager_and_the_member_write_no_more_than_each_step_needs() -> None:
    """As a dispatcher creates it, with the finalizer on it."""
    made = offer("a-1", gang_of("a", 3))
    made["metadata"]["finalizers"] = [FINALIZER]
    world = member(made)
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, gang_of("a", 3)))
    world.settle(seconds=5)
    world.delete("gangoffers", "a-1")
    world.settle(seconds=10)
    of_offer = (WriteOffer, StartOffer, HoldOffer, DeleteCreated)
    log = [type(each) for each in world.leader.log if isinstance(each, of_offer)]
    assert log == [WriteOffer, StartOffer, DeleteCreated, HoldOffer]
    writes = [each for each in world.leader.log if isinstance(each, WriteGangStatus)]
    assert [each.key.name for each in writes].count("gangoffer.a-1") == 1


def test_an_offer_is_not_closed_while_a_pod_of_its_gang_is_ending() -> None:
    world = started()
    pod = world.pods("a")[0]
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.delete("gangoffers", "a-1")
    world.settle(seconds=30)
    assert not exists(world, "rayclusters", "a")
    assert answer(world)["phase"] == "Started"
    assert pod["metadata"]["name"] in [each["metadata"]["name"] for each in world.pods("a")]
    del world.kubelets
    world.settle(seconds=5)
    assert not exists(world, "gangoffers", "a-1")


def preempted(replicas: int = 1) -> World:
    """A member on which an offer was accepted, and its gang preempted once it ran."""
    team = queue("team", preemption=LOWER)
    world = World(node("n1", cpu=4), team, HIGH, replicas=replicas)
    labels = {names.OPT_IN: "true", names.QUEUE: "team"}
    world.create(offer("a-1", gang_of("a", 3, labels=labels)))
    world.settle(seconds=5)
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, gang_of("a", 3, labels=labels)))
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Running"
    urgent = gang_of("b", 3, labels=labels)
    for each in (urgent["spec"]["headGroupSpec"], *urgent["spec"]["workerGroupSpecs"]):
        each["template"]["spec"] |= {"priorityClassName": "high", "priority": 7}
    world.create(urgent)
    return world


def test_a_gang_that_is_preempted_after_its_start_is_closed() -> None:
    world = preempted()
    world.settle(seconds=20)
    said = answer(world)
    assert (said["phase"], said["reason"]) == ("Closed", "Stopped"), world.status("a")
    assert "b" in said["message"]
    assert not exists(world, "rayclusters", "a")
    assert nodes_of(world, "b") == ["n1"] * 4


def test_a_leader_that_ends_amid_the_stop_has_a_successor_that_closes_it() -> None:
    world = preempted(replicas=2)
    for _ in range(200):
        world.settle(seconds=0.1)
        if answer(world).get("reason") == "Stopped":
            break
    assert answer(world)["phase"] in ("Started", "Closed")
    world.elect(1)
    world.settle(seconds=20)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "Stopped")
    assert not exists(world, "rayclusters", "a")


# ---- room that goes, leaders that change


def test_room_that_is_lost_before_the_acceptance_closes_the_offer() -> None:
    world = member(offer("a-1", gang_of("a", 3)))
    world.delete("nodes", "n1")
    world.settle(seconds=5)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "RoomLost")


def test_a_new_leader_closes_what_is_open_and_starts_what_was_accepted() -> None:
    world = member(offer("a-1", gang_of("a", 1)), offer("b-1", gang_of("b", 1)), cpu=4, replicas=2)
    assert answer(world, "a-1")["phase"] == answer(world, "b-1")["phase"] == "Offered"
    accept(world, "b-1")
    world.elect(1)
    world.settle(seconds=5)
    assert answer(world, "a-1")["phase"] == "Closed"
    assert answer(world, "b-1")["phase"] == "Started"


def test_a_new_leader_keeps_the_room_of_what_is_started_and_not_created() -> None:
    world = member(offer("a-1", gang_of("a", 3)), replicas=2)
    accept(world)
    world.settle(seconds=1)
    world.elect(1)
    world.create(gang_of("b", 3))
    world.settle(seconds=5)
    world.create(created_for(world, gang_of("a", 3)))
    world.settle(seconds=5)
    assert nodes_of(world, "a") == ["n1"] * 4


def test_a_leader_that_ends_amid_the_take_over_leaves_no_room_reserved_twice() -> None:
    world = member(offer("a-1", gang_of("a", 3)), replicas=2)
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, gang_of("a", 3)))
    world.controllers()
    world.leader.hear_all()  # takes the room over, and writes nothing of it
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=20)
    assert nodes_of(world, "a") == ["n1"] * 4
    assert gangs(world) == ["a"]


def room_of(world: World) -> Any:
    return world.leader.state.known.room.holders


def test_the_record_of_an_offer_goes_as_its_gang_is_released() -> None:
    """Else an extender would keep the room from the pods that it was kept for."""
    log = started().leader.log
    ends = [at for at, each in enumerate(log) if isinstance(each, DeleteGang)]
    first = next(at for at, each in enumerate(log) if isinstance(each, ReleasePod))
    assert len(ends) == 1
    assert ends[0] < first + 4  # in the same step as the releases of the four pods


def test_nothing_is_reserved_for_an_offer_once_its_gang_runs() -> None:
    world = started()
    assert not room_of(world)

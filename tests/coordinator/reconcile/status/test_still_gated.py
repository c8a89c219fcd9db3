"""Every pod that keeps its gate has a reason, also beside a minimum that runs."""

from functools import partial
from typing import Any

import msgspec

from coordinator.gang.demand import NotReady, demand
from coordinator.gang.pods.pod_sets import survey
from coordinator.messages.actions import EmitEvent
from kube.codec.observed_pod import observe
from kube.objects import names
from kube.objects.core import Pod
from kube.ray.gang_terms import GangTerms, PodSetTerms
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import (
    GPU,
    TEAM,
    Json,
    foreign_pod,
    gang_of,
    group,
    node,
    pod_of,
    ray_cluster,
    template,
)
from tests.coordinator.world import World, is_gated

READY = "the minimum is ready"


def autoscaled(name: str, replicas: int, least: int, **pod: Any) -> Json:
    workers = group("w", replicas, least=least, most=20, **pod)
    return ray_cluster(name, workers, enableInTreeAutoscaling=True)


def annotate(world: World, name: str, **annotations: str) -> None:
    keys = {f"{names.GROUP}/{key.replace('_', '-')}": value for key, value in annotations.items()}
    cluster = world.api.get(Key("rayclusters", TEAM, name))
    world.api.change(cluster, lambda obj: obj["metadata"]["annotations"].update(keys))


def relabel(labels: dict[str, str], cluster: Json) -> None:
    cluster["metadata"]["labels"] = labels


def conditions(world: World, name: str) -> dict[str, tuple[str, str, str]]:
    found = world.status(name)["conditions"]
    return {c["type"]: (c["status"], c["reason"], c.get("message", "")) for c in found}


def pod_set(world: World, name: str, called: str) -> Json:
    sets: dict[str, Json] = {each["name"]: each for each in world.status(name)["podSets"]}
    return sets[called]


def told(world: World, name: str) -> list[tuple[bool, str, str]]:
    said = [e for e in world.leader.emitted if isinstance(e, EmitEvent) and e.key.name == name]
    return [(each.warning, each.reason, each.message) for each in said]


# ---- surplus


def test_surplus_of_a_running_gang_says_why_it_waits() -> None:
    world = World(node("n1", cpu=8), node("n2", cpu=8, cordoned=True))
    world.create(autoscaled("a", 9, 1))
    world.settle(seconds=5)
    status = world.status("a")
    assert (status["phase"], status["reason"], status["ready"]) == ("Running", "Running", "8/10")
    why = "0 of 2 w fit: each needs 1 cpu on one node"
    assert status["message"].startswith(f"{READY}; 2 of 10 pods wait: {why}")
    reason, message = "InsufficientResources", status["message"].removeprefix(f"{READY}; ")
    assert conditions(world, "a")["SurplusPlaced"] == ("False", reason, message)
    workers = pod_set(world, "a", "w")
    assert (workers["reason"], workers["message"][:12]) == (reason, "0 of 2 w fit")
    assert workers["shortage"]["resource"] == "cpu"
    assert told(world, "a") == [(True, reason, message)]

    world.create(node("n3", cpu=8))
    world.settle(seconds=30)
    assert world.status("a")["message"] == READY
    assert conditions(world, "a")["SurplusPlaced"] == ("True", "Admitted", "")
    assert "reason" not in pod_set(world, "a", "w")


def test_what_is_said_of_surplus_follows_the_room_and_is_not_written_for_nothing() -> None:
    """The holders of what it waits for come and go; while nothing moves nothing is written."""
    world = World(node("n1", cpu=4, gpu=2))
    world.create(autoscaled("a", 3, 0, gpu=1, cpu=0))
    world.settle(seconds=60)
    assert (
        "1 of 4 pods waits: 0 of 1 w fits: it needs 1 nvidia.com/gpu"
        in (world.status("a")["message"])
    )
    written = world.gang("a")["metadata"]["resourceVersion"]
    world.settle(seconds=600)
    assert world.gang("a")["metadata"]["resourceVersion"] == written
    world.create(node("n2", gpu=8, cordoned=True))
    world.settle(seconds=120)
    assert "(left out: 1 is cordoned)" in world.status("a")["message"]


def test_surplus_that_is_not_supported_says_so() -> None:
    odd = group("odd", 1, least=0, schedulingGroup={"podGroupName": "x"})
    world = World(node("n1"))
    world.create(autoscaled("a", 2, 1))
    world.settle(seconds=5)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.edit("a", workerGroupSpecs=[*cluster["spec"]["workerGroupSpecs"], odd])
    world.settle(seconds=30)
    status = world.status("a")
    assert status["reason"] == "Running"
    assert status["message"].startswith(f"{READY}; 1 of 4 pods waits: not supported by Muster; odd")
    assert pod_set(world, "a", "odd")["reason"] == "Unsupported"


def test_the_surplus_of_a_gang_that_starts_is_told_with_its_placement() -> None:
    world = World(node("n1", cpu=2))
    world.create(autoscaled("a", 3, 1))
    world.kuberay()
    leader = world.leader
    for _ in range(4):
        leader.hear_all()
        leader.cycle()
        leader.act_all()
    status = world.status("a")
    assert status["phase"] == "Admitted"
    assert status["message"].startswith("2 pods placed on 1 node; 2 of 4 pods wait: 0 of 2 w fit")


# ---- annotations that broke


def test_workers_that_come_under_a_bad_annotation_say_misconfigured() -> None:
    world = World(node("n1", cpu=16))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    annotate(world, "a", min_replicas="workers=many")
    world.scale("a", 5)
    world.settle(seconds=30)
    bad = 'muster.dev/min-replicas: "workers=many" is not valid; allowed: a whole number from 0 on'
    status = world.status("a")
    assert (status["phase"], status["reason"], world.gated("a")) == ("Running", "Running", 3)
    assert status["message"].startswith(f"{READY}; 3 of 6 pods wait: {bad}")
    assert conditions(world, "a")["SurplusPlaced"][:2] == ("False", "Misconfigured")
    assert pod_set(world, "a", "workers")["reason"] == "Misconfigured"
    [(warning, reason, message)] = told(world, "a")
    assert (warning, reason) == (True, "Misconfigured")
    assert message.startswith(f"3 of 6 pods wait: {bad}")

    world.leader.restart()
    world.elect(0)
    world.settle(seconds=30)
    assert len(told(world, "a")) == 1  # it was told; the record says so
    annotate(world, "a", min_replicas="workers=2")
    world.settle(seconds=30)
    assert (world.status("a")["message"], world.gated("a")) == (READY, 0)


def test_pods_of_a_group_that_came_with_a_bad_annotation_are_told_too() -> None:
    """The gang goes on as it was understood last, and that had no such group."""
    world = World(node("n1", cpu=16))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    annotate(world, "a", expected_duration="soon")
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.edit("a", workerGroupSpecs=[*cluster["spec"]["workerGroupSpecs"], group("more", 2)])
    world.settle(seconds=30)
    assert world.gated("a") == 2
    assert world.status("a")["message"].startswith(
        f'{READY}; 2 of 5 pods wait: muster.dev/expected-duration: "soon" is not valid'
    )


# ---- gates of others, replicas in part


def test_surplus_that_others_hold_names_their_gates() -> None:
    held = group("held", 2, least=0, schedulingGates=[{"name": "example.com/hold"}])
    world = World(node("n1", cpu=16))
    world.create(
        ray_cluster("a", group("w", 1, least=1, most=9), held, enableInTreeAutoscaling=True)
    )
    world.settle(seconds=5)
    said = "2 of 4 pods wait: held by gates of others: example.com/hold"
    assert world.status("a")["message"] == f"{READY}; {said}"
    assert conditions(world, "a")["SurplusPlaced"] == ("False", "ForeignGates", said)


def test_a_gang_that_waits_says_so_of_each_pod_set_with_gated_pods() -> None:
    world = World(node("n1", cpu=2), node("n2", gpu=1))
    world.create(foreign_pod("x", "n2", gpu=1, cpu=0))
    world.create(ray_cluster("a", group("c", 1), group("g", 1, gpu=1)))
    world.settle(seconds=5)
    sets = {each["name"]: each.get("reason") for each in world.status("a")["podSets"]}
    assert set(sets) == {"headgroup", "c", "g"}
    assert set(sets.values()) == {"InsufficientResources"}
    assert pod_set(world, "a", "g")["shortage"]["resource"] == GPU


# ---- suspended


def test_the_pods_of_a_suspended_cluster_that_are_still_there_say_suspended() -> None:
    world = World(node("n1", cpu=2))
    world.create(autoscaled("a", 4, 1))
    world.settle(seconds=5)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["spec"].update(suspend=True))
    leader = world.leader
    for _ in range(4):  # and KubeRay has not come to it
        leader.hear_all()
        leader.act_all()
        leader.cycle()
        world.api.now += 60
        leader.tick()
    said = "the RayCluster is suspended: it asks for no pods"
    assert world.status("a")["message"].endswith(said)
    assert pod_set(world, "a", "w")["reason"] == "Suspended"


# ---- what is counted, and quota


def test_a_misconfigured_gang_counts_the_pods_that_it_asks_for() -> None:
    world = World(node("n1", cpu=16))
    annotations = {names.MIN_REPLICAS: "none=1"}
    world.create(ray_cluster("a", group("w", 2, hosts=2), annotations=annotations))
    world.settle(seconds=5)
    status = world.status("a")
    assert (status["reason"], status["ready"], status["totalPods"]) == ("Misconfigured", "0/5", 5)


def test_a_queue_without_quota_has_none_to_reserve() -> None:
    world = World(node("n1", cpu=2))
    world.create(gang_of("runs", 1), gang_of("waits", 5))
    world.settle(seconds=5)
    for name in ("runs", "waits"):
        said = conditions(world, name)["QuotaReserved"]
        assert said == ("True", "NotRequired", "the default queue has no quota")


# ---- keys


def test_a_key_that_is_none_of_ours_is_told_and_the_gang_goes_on() -> None:
    world = World(node("n1", cpu=16))
    world.create(gang_of("a", 2, annotations={"muster.dev/min-replica": "workers=1"}))
    world.settle(seconds=5)
    said = "muster.dev/min-replica is not a key of Muster; did you mean muster.dev/min-replicas?"
    assert world.status("a")["phase"] == "Running"
    assert conditions(world, "a")["KeysUnderstood"] == ("False", "UnknownKey", said)
    assert told(world, "a") == [(True, "UnknownKey", said)]
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["metadata"].update(annotations={}))
    world.settle(seconds=60)
    assert "KeysUnderstood" not in conditions(world, "a")
    assert len(told(world, "a")) == 1


def test_the_key_that_makes_a_gang_is_told_where_it_is_misspelt() -> None:
    """There is no Gang to say it; the pods run ungated, and the Event says why."""
    world = World(node("n1"))
    world.create(gang_of("a", 1, labels={"muster.dev/gan": "true"}), gang_of("b", 1, labels={}))
    world.settle(seconds=30)
    said = "muster.dev/gan is not a key of Muster; did you mean muster.dev/gang?"
    assert [(e.key.name, e.warning, e.reason, e.message) for e in world.leader.emitted] == [
        ("a", True, "UnknownKey", said)
    ]
    assert not list(world.api.all("gangs"))
    for at in range(100):  # whatever is patched how often
        cluster = world.api.get(Key("rayclusters", TEAM, "a"))
        labels = {f"muster.dev/key-{at}": ""}
        world.api.change(cluster, partial(relabel, labels))
        world.settle(seconds=1)
    world.settle(seconds=120)
    assert 2 <= len(world.leader.emitted) <= 4
    assert world.leader.emitted[-1].message.startswith("muster.dev/key-99 is not a key")
    world.delete("rayclusters", "a")
    world.settle(seconds=5)
    assert world.leader.state.known.unknown_keys.of(world.leader.emitted[0].key) == ""


def test_an_annotation_by_which_another_scheduler_shares_gpus_is_told_to_gangs_alone() -> None:
    world = World(node("n1"))
    shares = {"metadata": {"annotations": {"gpu-fraction": "0.5"}}}
    for each in (gang_of("a", 1), gang_of("b", 1, labels={})):
        each["spec"]["workerGroupSpecs"][0]["template"].update(shares)
        world.create(each)
    world.settle(seconds=30)
    told = [(e.key.name, e.reason) for e in world.leader.emitted]
    assert told == [("a", "UnknownKey")]
    assert "gpu-fraction (KAI and run:ai)" in world.leader.emitted[0].message
    conditions = {each["type"]: each for each in world.status("a")["conditions"]}
    assert "gpu-fraction" in conditions["KeysUnderstood"]["message"]


# ---- where there is less to go by


def test_half_a_replica_says_so_and_not_what_was_said_of_the_whole() -> None:
    world = World(node("n1", cpu=3))
    world.create(autoscaled("a", 2, 1, hosts=2))
    world.settle(seconds=5)
    assert "0 of 2 w fit" in world.status("a")["message"]
    world.api.remove(key_of(next(pod for pod in world.pods("a") if is_gated(pod))))
    leader = world.leader
    for _ in range(4):  # and KubeRay has not come to it
        world.api.now += 60
        leader.hear_all()
        leader.tick()
        leader.act_all()
    said = "1 of 4 pods waits: a replica of w starts whole, with all of its 2 pods"
    assert world.status("a")["message"] == f"{READY}; {said}"
    assert pod_set(world, "a", "w")["reason"] == "GangIncomplete"


def test_a_minimum_whose_pods_make_up_no_whole_replica_says_so() -> None:
    cluster = ray_cluster("a")
    cluster["metadata"]["uid"] = "u"
    names_of = [f"r{at}" for at in range(4)]
    raw = [pod_of(cluster, "w", each, template(), each, [names.GATE]) for each in names_of]
    pods = [observe(msgspec.convert(each, Pod)) for each in raw]
    standing = survey(GangTerms("", "", (PodSetTerms("w", 4, 4, 2),)), pods, None, {})
    asked = demand(GangKey(TEAM, "a"), 0, 0.0, standing)
    said = "group w: the pods that wait make up no whole replica of 2 pods"
    assert asked == NotReady(Reason.GANG_INCOMPLETE, said)


def test_each_pod_set_of_a_gang_that_is_not_ready_has_its_reason() -> None:
    held = group("held", 1, schedulingGates=[{"name": "example.com/hold"}])
    world = World(node("n1", cpu=16))
    world.create(ray_cluster("a", group("w", 1), held))
    world.settle(seconds=10)
    assert world.status("a")["reason"] == "ForeignGates"
    sets = {each["name"]: each.get("reason") for each in world.status("a")["podSets"]}
    assert sets == dict.fromkeys(("headgroup", "w", "held"), "ForeignGates")


def test_a_running_gang_of_which_nothing_is_understood_says_misconfigured() -> None:
    """Its record is lost and its annotation broken: only the pins tell that it runs."""
    world = World(node("n1", cpu=16))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    annotate(world, "a", expected_duration="soon")
    world.delete("gangs", "a")
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=30)
    status = world.status("a")
    assert (status["phase"], status["reason"], status["ready"]) == (
        "Running",
        "Misconfigured",
        "3/3",
    )
    assert status["message"].startswith('muster.dev/expected-duration: "soon" is not valid')


def test_gangs_that_could_grow_count_among_those_whose_numbers_move() -> None:
    """The more of them, the more seldom each is explained and written anew."""
    world = World(node("n1", cpu=30))
    world.create(*(autoscaled(f"g{at}", 2, 0, gpu=1) for at in range(30)))
    world.settle(seconds=30)
    assert all("SurplusPlaced" in conditions(world, f"g{at}") for at in range(30))
    assert world.leader.state.known.cycles.quiet == 3.0


def test_a_gang_of_too_many_worker_groups_is_misconfigured_and_waits_gated() -> None:
    world = World(node("n1"))
    empty = [group(f"g{number}", 0) for number in range(1000)]
    world.create(ray_cluster("a", group("w", 1), *empty))
    world.settle(seconds=30)
    status = world.status("a")
    said = 'workerGroupSpecs: "1001" is not valid; allowed: at most 1000'
    assert (status["reason"], status["message"]) == ("Misconfigured", said)
    assert (world.gated("a"), world.bound("a")) == (2, {})
    world.edit("a", workerGroupSpecs=[group("w", 1)])
    world.settle(seconds=30)
    assert world.status("a")["reason"] == "Running"

"""Gangs that lack room ask for nodes by a ProvisioningRequest."""

from collections.abc import Callable

import pytest

from kube.api.errors import NotFound
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import GPU, OPTED_IN, TEAM, Json, gang_of, group, node, ray_cluster
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import opt
from tests.coordinator.journeys.node_requests.worlds import (
    CLASS,
    IN_QUEUE,
    elastic,
    gpu_gang,
    message,
    requests,
    say,
    waiting,
)
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.world import World, name_of


def templates(world: World) -> list[Json]:
    return list(world.api.all("podtemplates"))


def test_a_gang_that_lacks_room_asks_once_for_all_its_pods_and_goes_on_when_nodes_come() -> None:
    world = waiting()
    world.settle(seconds=4)
    assert not requests(world)  # what ends in a moment may make room
    world.settle(seconds=10)
    [request] = requests(world)
    assert request["spec"]["provisioningClassName"] == CLASS
    assert request["spec"]["parameters"] == {"ValidUntilSeconds": "600"}
    counts = {each["podTemplateRef"]["name"]: each["count"] for each in request["spec"]["podSets"]}
    assert sorted(counts.values()) == [1, 2]
    assert counts.keys() == {name_of(each) for each in templates(world)}
    say(world, "Accepted")
    world.settle(seconds=70)
    assert (
        "asks for nodes for 3 pods; the autoscaler says: Accepted (Because: so it is)"
        in message(world)
    )
    say(world, "Provisioned")
    world.settle(seconds=5)
    assert len(requests(world)) == 1  # the machines are still starting
    world.create(node("g1", gpu=2))
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Running"
    assert not requests(world)
    assert not templates(world)
    assert "autoscaler" not in message(world)


def test_templates_hold_what_the_pods_ask_for_and_neither_our_gate_nor_their_secrets() -> None:
    world = World(node("n", cpu=8), elastic(nodeSelector={"pool": "h100"}, nodeSelectorScope="All"))
    pod: Json = {
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"zone": "z"},
        "volumes": [
            {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "s", "secret": {"secretName": "token"}},
        ],
    }
    cluster = ray_cluster("a", group("workers", 3, gpu=4, **pod), labels=IN_QUEUE)
    container = cluster["spec"]["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "PASSWORD", "value": "hush"}]
    world.create(
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": TEAM},
            "spec": {"accessModes": ["ReadWriteMany"]},
        },
        cluster,
    )
    world.settle(seconds=20)
    if not requests(world):
        pytest.fail(message(world))
    [mine] = [
        each["template"] for each in templates(world) if each["template"]["spec"].get("tolerations")
    ]
    assert mine["spec"]["nodeSelector"] == {"zone": "z", "pool": "h100"}
    assert mine["spec"]["volumes"] == pod["volumes"][:1]
    assert mine["spec"]["containers"][0]["resources"]["requests"][GPU] == "4"
    assert "schedulingGates" not in mine["spec"]
    assert "hush" not in str(mine)
    assert mine["metadata"]["labels"][names.RAY_NODE_TYPE] == "worker"


@pytest.mark.parametrize("kind", ["Failed", "BookingExpired", "CapacityRevoked"])
def test_what_failed_is_asked_again_after_a_time_that_doubles(kind: str) -> None:
    world = waiting()
    world.settle(seconds=10)
    first = name_of(requests(world)[0])
    say(world, kind, message="no GPU is left in the zone")
    world.settle(seconds=50)
    assert [name_of(each) for each in requests(world)] == [first]
    world.settle(seconds=30)
    [second] = requests(world)
    assert name_of(second) != first
    assert second["metadata"]["annotations"][names.NODES_ATTEMPT] == "2"
    say(world, kind, message="no GPU is left in the zone")
    world.settle(seconds=100)
    assert "no GPU is left in the zone" in message(world)
    assert "asked again 120 s after that" in message(world)
    assert requests(world) == [world.api.get(key_of_request(name_of(second)))]
    world.settle(seconds=40)
    assert requests(world)[0]["metadata"]["annotations"][names.NODES_ATTEMPT] == "3"


def key_of_request(name: str) -> Key:
    return Key("provisioningrequests", TEAM, name)


def test_a_new_leader_goes_on_where_the_last_one_stopped() -> None:
    world = waiting()
    world.settle(seconds=10)
    say(world, "Failed")
    world.settle(seconds=30)
    before = requests(world)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=10)
    assert requests(world) == before
    world.settle(seconds=40)
    [again] = requests(world)
    assert again["metadata"]["annotations"][names.NODES_ATTEMPT] == "2"


def leave(world: World) -> None:
    opt(world, "false")


def end(world: World) -> None:
    world.delete("rayclusters", "a")


def make_room(world: World) -> None:
    world.create(node("g", gpu=8))


def stop_asking(world: World) -> None:
    found = world.api.get(Key("gangqueues", "", "elastic"))
    world.api.change(found, lambda obj: obj["spec"].pop("provisioning"))


def take_quota(world: World) -> None:
    found = world.api.get(Key("gangqueues", "", "elastic"))
    world.api.change(found, lambda obj: obj["spec"].update(quota={GPU: "1"}))


@pytest.mark.parametrize("deed", [leave, end, make_room, stop_asking, take_quota])
def test_the_request_goes_when_nodes_are_no_longer_what_the_gang_waits_for(
    deed: Callable[[World], None],
) -> None:
    world = waiting()
    world.settle(seconds=10)
    assert requests(world)
    deed(world)
    world.settle(seconds=30)
    assert not requests(world)
    assert not templates(world)


def test_a_raycluster_that_a_finalizer_holds_keeps_no_nodes_asked_for() -> None:
    world = waiting()
    world.settle(seconds=10)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.hold(cluster, "x/y")
    world.delete("rayclusters", "a")
    world.settle(seconds=5)
    assert world.api.get(Key("rayclusters", TEAM, "a"))
    assert not requests(world)


def test_a_gated_pod_that_is_made_again_leaves_the_request_as_it_is() -> None:
    world = waiting()
    world.settle(seconds=10)
    before = requests(world)
    world.delete("pods", name_of(world.pods("a")[-1]))
    world.leader.hear_all()
    world.leader.act_all()
    world.settle(seconds=10)
    assert requests(world) == before


def test_a_changed_gang_asks_for_what_it_is_now() -> None:
    world = waiting()
    world.settle(seconds=10)
    [first] = requests(world)
    world.scale("a", 4)
    world.settle(seconds=10)
    [second] = requests(world)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert sum(each["count"] for each in second["spec"]["podSets"]) == 5
    assert {each["podTemplateRef"]["name"] for each in second["spec"]["podSets"]} == {
        name_of(each) for each in templates(world)
    }


def test_nodes_are_not_asked_for_where_they_do_not_help() -> None:
    world = waiting(quota={GPU: "1"})
    labels = {**OPTED_IN, names.QUEUE: "plain"}  # which asks for none
    world.create(queue("plain"), gang_of("other", 20, labels=labels))
    world.settle(seconds=60)
    assert world.status("a")["reason"] == "QuotaExceeded"
    assert world.status("other")["reason"] in ("InsufficientResources", "NeverFits")
    assert not requests(world)


def test_a_held_gang_asks_for_the_pods_that_it_will_have() -> None:
    labels = {**IN_QUEUE}
    cluster = ray_cluster(
        "a",
        group("workers", 2, gpu=1),
        labels=labels,
        annotations={names.HELD: "true"},
        suspend=True,
    )
    world = World(node("n", cpu=8), elastic(createPods="WhenAdmitted"), cluster)
    world.settle(seconds=20)
    assert not world.pods("a")
    [request] = requests(world)
    assert sorted(each["count"] for each in request["spec"]["podSets"]) == [1, 2]
    assert any(
        each["template"]["spec"]["containers"][0]["resources"]["requests"].get(GPU) == "1"
        for each in templates(world)
    )


@pytest.mark.parametrize("outcome", [Outcome.BROKEN, Outcome.LOST])
def test_a_write_that_fails_is_made_again(outcome: Outcome) -> None:
    world = waiting()
    world.settle(seconds=4)
    world.leader.client.outcome = outcome
    world.settle(seconds=60)
    assert len(requests(world)) == 1
    assert len(templates(world)) == 2


def test_where_no_such_kind_is_served_that_is_said_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = waiting()
    create = world.api.create

    def without_the_kind(obj: Json) -> Json:
        if obj["kind"] == "ProvisioningRequest":
            raise NotFound(404, "NotFound", "the server could not find the requested resource")
        return create(obj)

    monkeypatch.setattr(world.api, "create", without_the_kind)
    world.settle(seconds=90)
    assert "nodes could not be asked for: 404 NotFound: the server could not find" in message(world)
    assert not templates(world)
    monkeypatch.undo()  # it is installed
    world.settle(seconds=20)
    assert len(requests(world)) == 1
    assert len(templates(world)) == 2


@pytest.mark.parametrize(("allowed", "said"), [(False, True), (None, False)])
def test_a_coordinator_that_may_not_ask_says_so_and_a_dry_run_does_not(
    allowed: bool | None, said: bool
) -> None:
    world = World(node("n", cpu=8), elastic())
    world.leader.state.known.cache.node_requests.allowed = allowed
    world.create(gpu_gang("a", 2))
    world.settle(seconds=90)
    assert not requests(world)
    assert ("MUSTER_COORDINATOR_PROVISIONING is not true" in message(world)) is said


def pod_template(name: str, gpus: int) -> Json:
    container = {"name": "c", "resources": {"requests": {GPU: str(gpus)}}}
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": name, "namespace": TEAM},
        "template": {"spec": {"containers": [container]}},
    }


def test_a_template_that_is_there_already_is_not_what_nodes_are_asked_for() -> None:
    """Its name can be known beforehand, and nodes would be ordered for what it says."""
    world, before = waiting(), waiting()
    before.settle(seconds=10)
    world.create(*(pod_template(name_of(each), 100) for each in templates(before)))
    world.settle(seconds=10)
    asked = [each["template"]["spec"]["containers"][0]["resources"] for each in templates(world)]
    assert len(requests(world)) == 1
    assert sorted(each["requests"].get(GPU, "0") for each in asked) == ["0", "1"]


def test_a_request_of_others_has_none_of_their_templates_deleted() -> None:
    """Whoever may write requests need not be allowed to delete templates."""
    world = waiting()
    world.settle(seconds=10)
    [mine] = requests(world)
    forged = {**mine, "metadata": {**mine["metadata"], "name": "forged"}}
    forged["spec"] = {**mine["spec"], "podSets": [{"podTemplateRef": {"name": "t"}, "count": 1}]}
    world.create(pod_template("t", 1), forged)
    world.settle(seconds=10)
    assert requests(world) == [mine]
    assert "t" in map(name_of, templates(world))

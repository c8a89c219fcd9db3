"""Gangs with devices by claim that end for others: their devices are free once their claims are."""

from hypothesis import given
from hypothesis import strategies as st

from tests.coordinator.api import key_of
from tests.coordinator.builders import Json, gang_of, group, node, ray_cluster, template
from tests.coordinator.device_world import (
    asking,
    claim_template,
    device_class,
    device_slice,
    make_claim,
)
from tests.coordinator.journeys.preemption.worlds import IN_TEAM, LOWER, evicted, urgent
from tests.coordinator.journeys.queues.worlds import phases, queue
from tests.coordinator.world import World
from tests.examples import examples

PROTECTED = "resource.kubernetes.io/delete-protection"


def offering(cpu: int, devices: int, *others: Json) -> World:
    of_devices = device_slice("n1", devices), device_class(), claim_template("one")
    return World(node("n1", cpu=cpu), *of_devices, queue("team", preemption=LOWER), *others)


def claiming(name: str, workers: int, priority: int = 0) -> Json:
    of_gang = group("w", workers, priority=priority, **asking("one"))
    return ray_cluster(name, of_gang, head=template(priority=priority), labels=IN_TEAM)


def protect_claims(world: World) -> None:
    """Have the claims outlast their pods, as while kubelets still unprepare the devices."""
    for claim in list(world.api.all("resourceclaims")):
        world.api.change(claim, lambda obj: obj["metadata"].update(finalizers=[PROTECTED]))


def end_protection(world: World) -> None:
    for claim in list(world.api.all("resourceclaims")):
        if "deletionTimestamp" in claim["metadata"]:
            world.api.remove(key_of(claim))


def test_a_gang_with_claims_ends_for_another_and_its_devices_are_free_with_its_claims() -> None:
    world = offering(6, 3)
    world.create(claiming("v", 3))
    world.settle(seconds=10)
    assert world.bound("v") == {"n1": 4}
    protect_claims(world)
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    assert (world.bound("p"), len(evicted(world))) == ({"n1": 4}, 4)
    world.create(claiming("q", 1, priority=5))
    world.settle(seconds=10)
    assert phases(world, "q", "v") == ["Queued", "Queued"]
    assert world.status("q")["message"].startswith("waits for 3 devices of pods that are gone")
    end_protection(world)
    world.settle(seconds=10)
    assert world.bound("q") == {"n1": 2}


def test_a_gang_with_claims_has_one_stopped_for_room_or_for_devices() -> None:
    for cpu, devices, victim in ((4, 3, gang_of("v", 3, labels=IN_TEAM)), (9, 3, claiming("v", 3))):
        world = offering(cpu, devices)
        world.create(victim)
        world.settle(seconds=10)
        world.create(claiming("p", 2, priority=10))
        world.settle(seconds=10)
        assert phases(world, "p", "v") == ["Running", "Queued"]
        assert len(evicted(world)) == 4


def test_as_few_are_stopped_as_have_the_devices_that_it_lacks() -> None:
    world = offering(16, 6)
    world.create(claiming("u", 3), claiming("v", 2))
    world.settle(seconds=10)
    world.create(claiming("p", 3, priority=10))
    world.settle(seconds=10)
    assert phases(world, "p") == ["Running"]
    assert sorted(phases(world, "u", "v")) == ["Queued", "Running"]


def test_no_more_are_stopped_while_the_claims_of_those_that_were_are_not_gone() -> None:
    world = offering(16, 6)
    world.create(claiming("u", 3), claiming("v", 3))
    world.settle(seconds=10)
    protect_claims(world)
    world.create(claiming("p", 3, priority=10))
    world.settle(seconds=60)
    assert len(evicted(world)) == 4
    said = world.status("p")
    assert said["reason"] == "Preempting"
    assert said["message"] == "waits for 3 devices of pods that are gone; the room is held for it"
    world.create(claiming("q", 1))
    world.settle(seconds=10)
    first = next(c for c in world.api.all("resourceclaims") if "deletionTimestamp" in c["metadata"])
    world.api.remove(key_of(first))
    world.settle(seconds=10)
    assert world.status("q")["phase"] == "Queued"
    end_protection(world)
    world.settle(seconds=10)
    assert world.bound("p") == {"n1": 4}
    assert len(evicted(world)) == 4


def give_to_trainer(claim: Json) -> None:
    """Have a controller own a claim that its pod goes on to use."""
    [owner] = claim["metadata"]["ownerReferences"]
    claim["status"]["reservedFor"] = [{"resource": "pods", "name": "x", "uid": owner["uid"]}]
    claim["metadata"]["ownerReferences"] = [{**owner, "kind": "Trainer", "uid": "uid-trainer"}]


def test_devices_in_use_by_a_claim_of_another_controller_are_not_waited_for() -> None:
    """No pod owns such a claim; while pods use it, it stays."""
    world = offering(16, 3)
    world.create(claiming("v", 2, priority=10))
    world.settle(seconds=10)
    world.claims = False  # to the toy garbage collector the owner would be gone
    for claim in list(world.api.all("resourceclaims")):
        world.api.change(claim, give_to_trainer)
    world.create(claiming("p", 3))
    world.settle(seconds=5)
    for pod in world.pods("p"):
        for asked in pod["spec"].get("resourceClaims", ()):
            make_claim(world.api, pod, asked)
    world.settle(seconds=10)
    assert world.status("p")["reason"] == "InsufficientResources"


some = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 3), st.booleans()), min_size=2, max_size=6
)


@examples(15, otherwise=4)
@given(some)
def test_in_the_end_no_gang_waits_for_devices_that_lower_ones_have(
    found: list[tuple[int, int, bool]],
) -> None:
    """Claims may outlast their pods meanwhile; all that runs is whole, and has its own devices."""
    others = node("n2", cpu=64), device_slice("n2", 4)
    world = offering(64, 4, *others)
    for at, (workers, priority, lingers) in enumerate(found):
        world.create(claiming(f"g{at}", workers, priority))
        world.settle(seconds=5)
        if lingers:
            protect_claims(world)
    for _ in found:
        end_protection(world)
        world.settle(seconds=20)
    asks = {f"g{at}": each for at, each in enumerate(found)}
    runs = {name for name in asks if world.status(name)["phase"] == "Running"}
    taken = sum(asks[name][0] for name in runs)
    assert all(sum(world.bound(name).values()) == 1 + asks[name][0] for name in runs)
    assert taken <= 8
    for name in asks.keys() - runs:
        workers, priority, _ = asks[name]
        lower = sum(asks[each][0] for each in runs if asks[each][1] < priority)
        assert 8 - taken + lower < workers, name

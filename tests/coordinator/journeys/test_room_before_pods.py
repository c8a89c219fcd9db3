"""Room and quota that are promised to pods which do not exist yet, and how long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from kube.objects import names
from tests.coordinator import app_wrappers
from tests.coordinator.app_wrappers import (
    app_wrapper,
    become,
    config_map,
    job,
    phase,
    pods_of,
    wrapper_of,
)
from tests.coordinator.builders import TEAM, Json, gang_of, node
from tests.coordinator.held import held_gang, is_suspended
from tests.coordinator.journeys.app_wrappers.worlds import gang_status
from tests.coordinator.journeys.held_start.worlds import quota
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.world import World

GRACE = "workload.codeflare.dev.appwrapper/admissionGracePeriodDuration"

BESIDE = "with those of 1 other gang that is being created"


def counting(world: World) -> World:
    """Have the quota of the namespace count the pods that there are, as the API server does."""
    work = world.controllers

    def controllers() -> None:
        work()
        for each in list(world.api.all("resourcequotas")):
            now = quota(int(each["spec"]["hard"]["pods"]), len(list(world.api.all("pods"))))
            if each["status"] != now["status"]:
                world.api.change(each, partial(dict.update, status=now["status"]))

    world.controllers = controllers  # type: ignore[method-assign]
    return world


class FullError(Exception):
    """No more pods are to come."""


@contextmanager
def pods_come(world: World, most: int) -> Iterator[None]:
    """Have no more than so many pods there, until the block ends."""
    review, make = world._reviewed, world.kuberay

    def reviewed(owner: Json, pod: Json) -> Json:
        if len(list(world.api.all("pods"))) >= most:
            raise FullError
        return review(owner, pod)

    def until_full(work: Callable[[], None]) -> None:
        try:
            work()
        except FullError:
            return

    wrap = world.wrap
    world._reviewed = reviewed  # type: ignore[method-assign, assignment]
    world.kuberay = partial(until_full, make)  # type: ignore[method-assign]
    world.wrap = partial(until_full, wrap)  # type: ignore[method-assign]
    yield
    world._reviewed, world.kuberay, world.wrap = review, make, wrap  # type: ignore[method-assign]


def wrapped(name: str) -> Json:
    return app_wrapper(name, job(f"work-{name}", 4))


def cluster(name: str) -> Json:
    return held_gang(name, 3)


def was_started(world: World, name: str) -> bool:
    """Whether pods of an AppWrapper or RayCluster are asked for."""
    if any(each["metadata"]["name"] == name for each in world.api.all("appwrappers")):
        return phase(world.api, name) in ("Resuming", "Running")
    return not is_suspended(world.api, name)


def message(world: World, name: str) -> str:
    gangs = {each["metadata"]["name"]: each for each in world.api.all("gangs")}
    found = gangs.get(name) or gangs[f"appwrapper.{name}"]
    return str(found["status"]["message"])


def pods_of_any(world: World, name: str) -> list[Json]:
    return pods_of(world.api, name) or world.pods(name)


KINDS = pytest.mark.parametrize("of", [wrapped, cluster])


@KINDS
def test_a_quota_is_promised_to_one_gang_until_its_pods_use_it(of: Callable[[str], Json]) -> None:
    world = counting(World(node("n1", cpu=16), quota(6)))
    with pods_come(world, 0):
        world.create(of("a"))
        world.settle(seconds=5)
        world.create(of("b"))
        world.settle(seconds=5)
        assert (was_started(world, "a"), was_started(world, "b")) == (True, False)
        assert BESIDE in message(world, "b")
    world.settle(seconds=30)
    assert len(pods_of_any(world, "a")) == 4
    assert not was_started(world, "b")
    assert "the gang needs 4 of pods; 2 of 6 are left; of pods in it " in message(world, "b")
    assert message(world, "b").endswith("a has 4")
    world.delete("appwrappers" if of is wrapped else "rayclusters", "a")
    world.settle(seconds=30)
    assert len(pods_of_any(world, "b")) == 4


@KINDS
def test_what_a_quota_counts_of_a_gang_already_is_not_kept_beside_that(
    of: Callable[[str], Json],
) -> None:
    """Of 8, 2 are used and 2 are to come: another 4 have room."""
    world = counting(World(node("n1", cpu=16), quota(8)))
    with pods_come(world, 2):
        world.create(of("a"))
        world.settle(seconds=5)
        assert len(pods_of_any(world, "a")) == 2
        world.create(of("b"))
        world.settle(seconds=5)
        assert was_started(world, "b")


def test_quota_is_kept_for_pods_beyond_the_minimum_too_while_they_come() -> None:
    world = counting(World(node("n1", cpu=16), quota(6)))
    large = held_gang("a", 3)
    large["metadata"]["annotations"][names.MIN_REPLICAS] = "workers=1"
    with pods_come(world, 2):
        world.create(large)
        world.settle(seconds=5)
        world.create(cluster("b"))
        world.settle(seconds=5)
        assert not was_started(world, "b")
        world.settle(seconds=120)  # they do not come
        assert was_started(world, "b")


@pytest.mark.parametrize(
    ("counted", "wrapped_object"),
    [("count/jobs.batch", None), ("count/configmaps", "c"), ("configmaps", "c")],
)
def test_a_quota_of_objects_is_promised_to_one_app_wrapper_and_the_second_waits_for_it(
    counted: str, wrapped_object: str | None
) -> None:
    world = World(node("n1", cpu=16), quota_of(counted, 1))
    for name in ("a", "b"):
        items = [config_map(f"{wrapped_object}-{name}")] if wrapped_object else []
        world.create(app_wrapper(name, *items, job(f"work-{name}", 2)))
    with creations_fail(world):
        world.settle(seconds=5)
        assert (was_started(world, "a"), was_started(world, "b")) == (True, False)
        assert f"needs 2 of {counted}; 1 of 1 are left ({BESIDE})" in message(world, "b")
    use(world, counted, 1)
    world.settle(seconds=30)
    assert len(pods_of(world.api, "a")) == 2
    assert f"ResourceQuota few: the gang needs 1 of {counted}; 0 of 1 are left" in message(
        world, "b"
    )
    assert not was_started(world, "b")
    use(world, counted, 0)
    world.settle(seconds=5)
    assert len(pods_of(world.api, "b")) == 2


def quota_of(counted: str, hard: int, used: int = 0) -> Json:
    """A ResourceQuota of objects."""
    bounds = {"hard": {counted: str(hard)}}
    status = {**bounds, "used": {counted: str(used)}}
    metadata = {"name": "few", "namespace": TEAM}
    return {"kind": "ResourceQuota", "metadata": metadata, "spec": bounds, "status": status}


def use(world: World, counted: str, used: int) -> None:
    [found] = world.api.all("resourcequotas")
    world.api.change(found, lambda obj: obj["status"].update(used={counted: str(used)}))


@contextmanager
def creations_fail(world: World) -> Iterator[None]:
    """Have the wrapper start to create objects and get no answer, until the block ends."""
    create = app_wrappers._create
    app_wrappers._create = lambda _api, _wrapper: None  # type: ignore[assignment]
    try:
        yield
    finally:
        app_wrappers._create = create


def test_what_is_refused_as_it_is_created_pauses_and_is_told() -> None:
    """Nothing that is known ahead refuses it."""
    world = World(node("n1", cpu=4))
    with creations_fail(world):
        world.create(wrapped("a"))
        world.settle(seconds=5)
        assert phase(world.api, "a") == "Resuming"
        said = "GenericItems[0]: exceeded quota: few"
        become(world.api, wrapper_of(world.api, "a"), "Suspending", message=said)
        world.settle(seconds=5)
        assert f"it was stopped: {said}" in message(world, "a")
        assert gang_status(world)["held"]["failures"] == 1
        world.settle(seconds=20)
        assert phase(world.api, "a") == "Suspended"
    world.settle(seconds=30)
    assert len(pods_of(world.api, "a")) == 4


# ---- how long


@KINDS
@pytest.mark.parametrize(("allowed", "kept"), [(None, 60), (5, 5), (600, 600)])
def test_room_is_kept_for_pods_that_never_come_only_as_long_as_the_queue_says(
    of: Callable[[str], Json], allowed: int | None, kept: int
) -> None:
    """A tenant's own grace says nothing about that."""
    timeouts = {} if allowed is None else {"createSeconds": allowed}
    world = World(node("n1", cpu=4), queue("team", timeouts=timeouts))
    asked = of("a")
    asked["metadata"]["labels"][names.QUEUE] = "team"
    asked["metadata"]["annotations"][GRACE] = "24h"
    with pods_come(world, 0):
        world.create(asked)
        world.settle(seconds=kept - 1)
        assert was_started(world, "a")
        world.settle(seconds=2)
        assert not was_started(world, "a")
        assert f"0 of 4 pods exist, and none came within {kept} s" in message(world, "a")
    world.create(gang_of("other", 3))
    world.settle(seconds=5)
    assert world.bound("other") == {"n1": 4}


def test_pods_that_come_and_go_keep_no_room_for_the_others() -> None:
    world = World(node("n1", cpu=4))
    with pods_come(world, 1):
        world.create(wrapped("a"))
        for _ in range(4):
            world.settle(seconds=20)
            for pod in pods_of(world.api, "a"):
                world.delete("pods", pod["metadata"]["name"])
        assert not was_started(world, "a")


@pytest.mark.parametrize(
    ("refusal", "kept"),
    [
        ('pods "a-x" is forbidden: exceeded quota: few, requested: pods=1, used: pods=6', 0),
        ('pods "a-x" is forbidden: error looking up service account team/no: not found', 0),
        ("Internal error occurred: failed calling webhook: no endpoints available", 30),
    ],
)
def test_what_the_api_server_refuses_gives_its_room_back_at_once(refusal: str, kept: int) -> None:
    world = World(node("n1", cpu=4))
    said = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateHeadPod"}
    with world.kuberay_refuses({**said, "message": f"FailedCreateHeadPod\n {refusal}"}):
        world.create(cluster("a"))
        if kept:
            world.settle(seconds=kept - 1)
            assert was_started(world, "a")
        world.settle(seconds=2)
        assert not was_started(world, "a")
        status = world.status("a")
        assert (status["reason"], "placement" in status) == ("PodsRefused", False)
        assert f"0 of 4 pods exist; KubeRay could not create more: {refusal}" in status["message"]

"""Muster keeps knowing that a gang ran, whatever becomes of its pods and its annotations."""

from collections.abc import Callable
from typing import Any

from coordinator.messages.actions import DeletePod
from coordinator.messages.clock import Patience
from kube.api.errors import ApiError, Forbidden
from kube.objects import names
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, node
from tests.coordinator.world import World, name_of

Json = dict[str, Any]

LONG = 3 * Patience().torn


class NoWorker(dict[str, ApiError]):
    """A policy against each change of a worker, whatever its name."""

    def __contains__(self, name: object) -> bool:
        return "workers" in str(name)

    def __getitem__(self, name: str) -> ApiError:
        return Forbidden(403, "Forbidden", "policy says no")


def change(world: World, what: Callable[[Json], object]) -> None:
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: what(obj["metadata"]))


def break_terms(world: World) -> None:
    change(world, lambda meta: meta["annotations"].update({names.MIN_REPLICAS: "nope=1"}))


def mend_terms(world: World) -> None:
    change(world, lambda meta: meta["annotations"].clear())


def adopted(workers: int) -> World:
    """A gang that was opted in when all of its pods ran."""
    world = World(node("n1", cpu=1 + workers))
    world.create(gang_of("a", workers, labels={}))
    world.settle(seconds=60)
    change(world, lambda meta: meta["labels"].update({names.OPT_IN: "true"}))
    world.settle(seconds=30)
    assert world.status("a")["phase"] == "Running"
    return world


def lose_a_worker(world: World) -> None:
    lost = next(pod for pod in world.pods("a") if "workers" in name_of(pod))
    world.api.remove(key_of(lost))


def lead_anew(world: World) -> None:
    world.leader.restart()
    world.elect(0)


def deleted(world: World) -> list[str]:
    return [each.name for each in world.leader.log if isinstance(each, DeletePod)]


def refused_replacement() -> World:
    """A gang that ran lost a worker, and the release of its replacement is refused."""
    world = World(node("n1", cpu=4))
    world.create(gang_of("a", 3))
    world.settle(seconds=60)
    world.api.refusals = NoWorker()
    lose_a_worker(world)
    world.settle(seconds=60)
    return world


def test_a_gang_that_ran_says_so_while_a_replacement_is_refused() -> None:
    world = refused_replacement()
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "ReleaseRefused")
    lead_anew(world)
    world.settle(seconds=LONG)
    assert (world.bound("a"), deleted(world)) == ({"n1": 3}, [])


def test_kuberay_tells_a_new_leader_of_having_run_where_the_record_does_not() -> None:
    """Also of pods that Muster released."""
    world = refused_replacement()
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    ran = {"type": "RayClusterProvisioned", "lastTransitionTime": "2026-01-01T00:00:05Z"}
    said = {"conditions": [ran | {"status": "True"}]}
    world.api.change(cluster, lambda obj: obj.update(status=said))
    gang = world.gang("a")
    world.api.change(gang, lambda obj: obj["status"].update(phase="Admitted"), "status")
    assert world.status("a")["phase"] == "Admitted"
    lead_anew(world)
    world.settle(seconds=LONG)
    assert (world.bound("a"), deleted(world)) == ({"n1": 3}, [])


def test_a_bad_annotation_does_not_make_a_gang_that_ran_gather() -> None:
    world = adopted(workers=5)
    break_terms(world)
    world.settle(seconds=30)
    status = world.status("a")
    assert (status["phase"], status["ready"]) == ("Running", "6/6")
    assert "the minimum is ready; muster.dev/min-replicas" in status["message"]
    lead_anew(world)
    world.settle(seconds=30)
    assert (world.status("a")["phase"], world.status("a")["ready"]) == ("Running", "6/6")


def test_mending_a_bad_annotation_deletes_nothing_of_a_gang_that_ran() -> None:
    world = adopted(workers=5)
    break_terms(world)
    world.settle(seconds=30)
    world.create(foreign_pod("thief", "n1"))
    lose_a_worker(world)
    world.settle(seconds=30)
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "Misconfigured")
    mend_terms(world)
    world.settle(seconds=LONG)
    assert (world.bound("a"), deleted(world)) == ({"n1": 5}, [])


def test_a_gang_that_ran_keeps_that_while_no_terms_are_known_and_a_pod_is_on_a_node() -> None:
    """Its record was emptied, and the next leader knows the phase alone."""
    world = adopted(workers=2)
    break_terms(world)
    world.settle(seconds=30)
    world.api.change(world.gang("a"), lambda obj: obj["spec"].update(podSets=[]))
    lead_anew(world)
    world.settle(seconds=30)
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "Misconfigured")
    for pod in world.pods("a"):
        world.api.remove(key_of(pod))
    world.settle(seconds=30)
    assert world.status("a")["phase"] == "Gathering"

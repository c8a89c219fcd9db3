"""`muster fit` judges pods that claim devices by templates as the coordinator will."""

from typing import Any

import pytest

from cli.endings import NOT_READ
from kube.api.resources import Resource
from tests.cli.fitting.created import asked_and_created
from tests.cli.fitting.reader import MemoryReader, T, answer, answers, fit, reader_of
from tests.coordinator.builders import TEAM, Json, group, node, ray_cluster
from tests.coordinator.device_world import (
    ANY,
    asking,
    claim_template,
    device_class,
    device_slice,
)
from tests.coordinator.world import World
from tests.kube.devices.objects import GPU


def gang(name: str, workers: int, *templates: str) -> Json:
    return ray_cluster(name, group("w", workers, **asking(*templates or ("one",))))


def offering(**devices: int) -> list[Json]:
    nodes = [node(each, cpu=64) for each in devices]
    slices = [device_slice(each, count) for each, count in devices.items()]
    templates = [claim_template("one"), claim_template("two", 2), claim_template("any", 1, ANY)]
    return [*nodes, *slices, device_class(), device_class(ANY), *templates]


WORLDS: dict[str, tuple[list[Json], list[Json]]] = {
    "free": (offering(a=4), []),
    "two nodes": (offering(a=3, b=3), []),
    "in use": (offering(a=4), [gang("first", 2)]),
    "waits": (offering(a=4), [gang("first", 9)]),
    "without devices": ([node("a", cpu=64), device_class(), claim_template("one")], []),
    "without a template": ([node("a", cpu=64), device_slice("a", 4), device_class()], []),
}
ASKED = {
    "three": gang("train", 3),
    "many": gang("train", 9),
    "pairs": gang("train", 2, "two"),
    "two claims": gang("train", 1, "one", "any"),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("world", WORLDS)
def test_the_answer_is_that_of_the_gang_once_it_is_created(world: str, asked: str) -> None:
    found, there = asked_and_created(*WORLDS[world], ASKED[asked])
    status = there.status("train")
    if "placement" in status:
        assert found["fits"] == "Yes"
    else:
        assert (found["fits"], found["reason"]) == ("No", status["reason"])
        assert _words(found["message"]) == _words(status["message"])


def _words(message: str) -> str:
    """A message without the name of a pod: KubeRay draws those."""
    return message.partition(", claim ")[2] or message


def test_the_largest_count_that_fits_is_found_by_its_devices() -> None:
    found = answer(World(*offering(a=4)), gang("train", 9))
    assert [(each["group"], each["fit"]) for each in found["largestThatFit"]] == [("w", 4)]


def test_gangs_of_one_file_share_the_devices() -> None:
    found = answers(fit(reader_of(World(*offering(a=4))), gang("one", 3), gang("two", 3)))
    assert [each["fits"] for each in found] == ["Yes", "No"]
    assert GPU in found[1]["message"]


@pytest.mark.parametrize(
    "kind", ["resourceslices", "resourceclaims", "resourceclaimtemplates", "deviceclasses"]
)
def test_a_right_that_is_missing_is_named_and_nothing_is_said_of_devices(kind: str) -> None:
    result = fit(reader_of(World(*offering(a=4)), forbidden=(kind,)), gang("train", 1))
    [found] = answers(result)
    assert (found["fits"], result.exit_code) == ("Unknown", NOT_READ)
    assert "resourceClaims" in found["message"]
    said = f"not allowed to list {kind}: gangs whose pods claim devices are not judged"
    assert said in result.stdout


def test_a_claim_that_pods_share_is_only_known_once_they_exist() -> None:
    shared = [{"name": "gpu", "resourceClaimName": "shared"}]
    workers = group("w", 2, resourceClaims=shared)
    found = answer(World(*offering(a=4)), ray_cluster("train", workers))
    assert found["fits"] == "Unknown"
    assert "resourceClaims: gpu" in found["message"]


def test_where_claims_are_not_supported_the_version_is_named() -> None:
    reader = MemoryReader(World(*offering(a=4)).api.all)
    reader.kubernetes = "1.32"
    [found] = answers(fit(reader, gang("train", 1)))
    assert (found["fits"], found["reason"]) == ("No", "Unsupported")
    assert "1.32" in found["message"]


@pytest.mark.parametrize(("hard", "fits"), [(3, "Yes"), (2, "No")])
def test_the_claims_of_all_pods_are_held_against_quota_by_class(hard: int, fits: str) -> None:
    name = f"{GPU}.deviceclass.resource.k8s.io/devices"
    quota = {
        "kind": "ResourceQuota",
        "metadata": {"name": "devices", "namespace": TEAM},
        "spec": {"hard": {name: str(hard)}},
        "status": {"hard": {name: str(hard)}, "used": {name: "0"}},
    }
    found = answer(World(*offering(a=4), quota), gang("train", 3))
    assert found["fits"] == fits
    if fits == "No":
        assert f"the gang needs 3 of {name}; 2 of 2 are left" in found["message"]


def test_without_claims_nothing_of_devices_is_read() -> None:
    reader = _Noting(World(*offering(a=4)).api.all)
    assert answers(fit(reader, ray_cluster("train", group("w", 1))))[0]["fits"] == "Yes"
    assert not {"resourceslices", "resourceclaims"} & reader.asked


class _Noting(MemoryReader):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked: set[str] = set()

    async def list(self, resource: Resource, as_: type[T], **how: str) -> tuple[T, ...]:
        self.asked.add(resource.plural)
        return await super().list(resource, as_, **how)


RESOURCE = "example.com/gpu"


def by_resource(name: str, workers: int) -> Json:
    amounts = {"requests": {"cpu": "1", RESOURCE: "1"}, "limits": {RESOURCE: "1"}}
    containers = [{"name": "ray", "resources": amounts}]
    return ray_cluster(name, group("w", workers, containers=containers))


@pytest.mark.parametrize("workers", [2, 3])
def test_what_a_class_gives_for_a_resource_is_judged_as_once_the_gang_is_created(
    workers: int,
) -> None:
    """One of three devices is in use, by a gang that asked for it the same way."""
    there = [node("a", cpu=64), device_slice("a", 3), device_class(GPU, RESOURCE)]
    found, world = asked_and_created(
        there, [by_resource("first", 1)], by_resource("train", workers)
    )
    status = world.status("train")
    assert found["fits"] == ("Yes" if "placement" in status else "No")
    assert (found["fits"] == "Yes") == (workers == 2)
    if workers == 3:
        assert (found["reason"], found["message"]) == (status["reason"], status["message"])


def test_claims_that_it_has_already_are_not_asked_of_a_quota_again() -> None:
    name = f"{GPU}.deviceclass.resource.k8s.io/devices"
    quota = {
        "kind": "ResourceQuota",
        "metadata": {"name": "devices", "namespace": TEAM},
        "spec": {"hard": {name: "4"}},
        "status": {"hard": {name: "4"}, "used": {name: "0"}},
    }
    world = World(*offering(a=2), quota)
    world.create(gang("train", 3))
    world.settle(seconds=5)
    used = {"hard": {name: "4"}, "used": {name: "3"}}
    world.api.change(quota, lambda obj: obj.update(status=used))
    world.settle(seconds=5)
    found = answer(world, gang("train", 3))
    assert (found["fits"], found["reason"]) == ("No", "InsufficientResources")

"""Warnings of a member are told of the Ray objects on the manager that they are about."""

from typing import Any

from dispatcher.messages import Gone, Seen, TellWarning
from dispatcher.reading import Warned
from dispatcher.warned import MOST_REASONS, REPEATED_AFTER
from tests.dispatcher.objects import TEAM, meta
from tests.dispatcher.world import World

MISSING = 'MountVolume.SetUp failed for volume "s": secret "data" not found'


def warned(name: str, kind: str = "Pod", **more: Any) -> Warned:
    said = {"reason": "FailedMount", "message": MISSING, "at": "2026-01-02T00:00:00Z", **more}
    place = said.pop("namespace", TEAM)
    return Warned(
        meta(f"{name}.1", f"event-{name}", namespace=place),
        kind,
        name,
        **said,
    )


def running(*names: str) -> World:
    world = World(east=len(names))
    for each in names:
        world.submit(each, creation_timestamp="2026-01-01T00:00:00Z")
    world.settle(2.0)
    return world


def told(world: World) -> list[tuple[str, str, str]]:
    return [
        (each.original.metadata.name, each.reason, each.message)
        for each in world.written(TellWarning)
    ]


def test_a_warning_of_a_pod_is_told_of_its_object_with_cluster_and_pod() -> None:
    world = running("train")
    world.tell(Seen("east", warned("train-head-x7b2k")))
    said = f"cluster east: Pod train-head-x7b2k: {MISSING}"
    assert told(world) == [("train", "FailedMount", said)]


def test_the_longest_name_is_the_one_that_is_meant() -> None:
    world = running("train", "train-big")
    world.tell(Seen("east", warned("train-big-workers-worker-1")))
    world.tell(Seen("east", warned("train", kind="RayCluster", reason="FailedToCreateHeadPod")))
    assert [(name, reason) for name, reason, _ in told(world)] == [
        ("train-big", "FailedMount"),
        ("train", "FailedToCreateHeadPod"),
    ]


def test_what_is_about_none_of_ours_is_not_told() -> None:
    world = running("train")
    for each in (
        warned("trainer-head"),
        warned("train-head", namespace="others"),
        warned("train-head", kind="Service"),
        warned("train-head", at="2020-01-01T00:00:00Z"),  # of a train before this one
    ):
        world.tell(Seen("east", each), Gone("east", each))
    world.tell(Seen("west", warned("train-head")))
    assert told(world) == []


def test_the_same_is_told_again_after_a_time_and_something_else_at_once() -> None:
    world = running("train")
    for _ in range(3):
        world.tell(Seen("east", warned("train-head")))
    world.tell(Seen("east", warned("train-head", message="no such image")))
    assert len(told(world)) == 2
    world.settle(REPEATED_AFTER + 1, each=60.0)
    world.tell(Seen("east", warned("train-head", message="no such image")))
    assert len(told(world)) == 3


def test_whoever_writes_many_reasons_has_the_first_of_them_told() -> None:
    world = running("train")
    for at in range(100):
        world.tell(Seen("east", warned("train-head", reason=f"R{at}")))
    assert len(told(world)) == MOST_REASONS


def test_a_warning_that_cannot_be_written_holds_nothing_up() -> None:
    world = running("train")
    world.refuse = {TellWarning}
    world.tell(Seen("east", warned("train-head")))
    world.edit("train", suspend=True)
    world.settle(5.0)
    assert world.members["east"].copies["uid-train"].sent

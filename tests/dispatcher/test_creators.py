"""Where users are the same, a member is asked what the creator of an object may create there."""

from __future__ import annotations

from typing import Any, cast

import pytest

from dispatcher.messages import HERE, AskMember, PatchOffer, Seen, WithdrawOffer
from dispatcher.shell.rights import RefusedCreator, check_creator
from kube.api.client import Client
from kube.api.kinds import Kind, Kinds, Served
from kube.api.resources import Resource
from kube.gang.sent import APP_WRAPPER, RESOURCES, typed
from kube.objects import names
from kube.objects.clusters.queue_clusters import QueueClusters
from tests.dispatcher.objects import TEAM, Json, member_cluster, original
from tests.dispatcher.world import World

ANN = {names.CREATED_BY: '{"username":"ann","groups":["research"]}'}
EAST_FIRST = QueueClusters(order=("east", "west"))


def world_of_the_same_users() -> World:
    world = World(EAST_FIRST, east=1, west=1)
    world.tell(*(Seen(HERE, member_cluster(name, users="Same")) for name in world.members))
    return world


def refusals(world: World, name: str) -> dict[str, str]:
    return {each.cluster: each.message for each in world.dispatch(name).refusals}


# ---- the state machine


def test_a_gang_goes_to_a_member_that_lets_its_creator_and_the_other_says_why_not() -> None:
    world = world_of_the_same_users()
    world.members["east"].forbids = {"train"}
    world.members["west"].room = 0
    world.submit("train")
    world.settle(5.0)
    assert refusals(world, "train") == {"east": "user ann may not", "west": "0 of 2 workers fit"}
    assert len([each for each in world.written(AskMember) if each.member == "east"]) == 1
    world.members["west"].room = 1
    world.settle(3.0)
    assert world.runs() == {"train": ["west"]}
    assert all(each.creator_of is not None for each in world.written(PatchOffer))


def test_a_right_that_was_granted_meanwhile_is_found_after_a_minute() -> None:
    world = world_of_the_same_users()
    world.members["west"].room = 0
    world.members["east"].forbids = {"train"}
    world.submit("train")
    world.settle(30.0, each=2.0)
    world.members["east"].forbids = set()
    world.settle(20.0, each=2.0)
    assert world.runs() == {}
    world.settle(20.0, each=2.0)
    assert world.runs() == {"train": ["east"]}


def test_a_right_that_was_taken_away_before_the_acceptance_starts_nothing_there() -> None:
    world = world_of_the_same_users()
    world.members["east"].room = world.members["west"].room = 0
    world.submit("train")
    world.settle(3.0)
    world.members["east"].forbids = {"train"}
    world.members["east"].room = 1
    world.settle(3.0)
    assert world.runs() == {}
    assert [each.member for each in world.written(PatchOffer)] == ["east"]
    assert "east" in [each.member for each in world.written(WithdrawOffer)]
    world.members["west"].room = 1
    world.settle(3.0)
    assert world.runs() == {"train": ["west"]}
    assert refusals(world, "train") == {}


def test_a_member_with_users_of_its_own_is_not_asked() -> None:
    world = World(east=1)
    world.members["east"].forbids = {"train"}
    world.submit("train")
    world.settle(3.0)
    assert world.runs() == {"train": ["east"]}


# ---- what is asked


class Reviewer:
    """An API server that lets users create some resources."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.specs: list[Json] = []

    async def create(self, _path: str, body: Json, *, as_: type[Any], **_: Any) -> Any:
        self.specs.append(body["spec"])
        resource = body["spec"]["resourceAttributes"]["resource"]
        return as_(status=as_().status.__class__(allowed=resource in self.allowed))


class Discovery:
    async def find(self, kind: Kind) -> Served | None:
        found = {typed(each)["kind"]: RESOURCES[each] for each in RESOURCES}
        found["Job"] = Resource("batch", "v1", "jobs")
        resource = found.get(kind.name)
        return Served(resource, frozenset()) if resource is not None else None


async def check(reviewer: Reviewer, kind: str = "RayCluster", **more: Any) -> None:
    found = original("train", kind, **more)
    await check_creator(cast(Client, reviewer), cast(Kinds, Discovery()), found)


async def test_the_creator_is_named_with_its_groups() -> None:
    reviewer = Reviewer("rayclusters")
    await check(reviewer, annotations=ANN)
    (spec,) = reviewer.specs
    assert (spec["user"], spec["groups"]) == ("ann", ["research"])
    asked = spec["resourceAttributes"]
    assert (asked["verb"], asked["group"], asked["namespace"]) == ("create", "ray.io", TEAM)


async def test_who_may_not_is_told_in_one_line() -> None:
    with pytest.raises(RefusedCreator) as refused:
        await check(Reviewer("rayjobs"), annotations=ANN)
    said = f'user "ann" may not create rayclusters.ray.io in namespace {TEAM}'
    assert str(refused.value) == said


async def test_without_a_note_nothing_is_asked() -> None:
    reviewer = Reviewer("rayclusters")
    with pytest.raises(RefusedCreator, match="create the RayCluster anew"):
        await check(reviewer)
    assert not reviewer.specs


async def test_what_an_appwrapper_wraps_is_asked_for_too() -> None:
    await check(Reviewer("appwrappers", "jobs"), APP_WRAPPER)
    with pytest.raises(RefusedCreator, match=r"create jobs\.batch"):
        await check(Reviewer("appwrappers"), APP_WRAPPER)

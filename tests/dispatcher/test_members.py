"""Connections to members: who is taken, who is refused, and what of it is told."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from dispatcher.candidates import Member
from dispatcher.messages import Event, MemberDown, MemberUp
from dispatcher.metrics import Metrics
from dispatcher.settings import Settings
from dispatcher.shell.access import access_of
from dispatcher.shell.fleet import COUNT_EVERY, Fleet, gangs_to_tell
from dispatcher.shell.kubeconfig import target_of
from kube.api.client import Client
from kube.api.leader_election import Term
from kube.objects.base import ObjectMeta
from kube.objects.clusters.member_cluster import (
    KubeconfigSecret,
    MemberCluster,
    MemberClusterSpec,
    MemberClusterStatus,
)
from tests.dispatcher.fake_members import FakeServer, serving

MANAGER = "uid-of-the-manager"
HURRIED = Settings(probe_seconds=0.05, member_timeout=0.5)


def cluster(name: str, uid: str = "") -> MemberCluster:
    secret = KubeconfigSecret(f"member-{name}")
    return MemberCluster(
        ObjectMeta(name=name, uid=f"uid-{name}"),
        MemberClusterSpec(kubeconfig_secret=secret, namespaces=("team",)),
        MemberClusterStatus(uid=uid),
    )


@dataclass
class Told:
    """What the state machine was told of members."""

    events: list[Event] = field(default_factory=list)

    def up(self, name: str) -> bool:
        return MemberUp(name) in self.events

    def why_down(self, name: str) -> str:
        found = (e.why for e in self.events if isinstance(e, MemberDown) and e.member == name)
        return next(found, "")


@contextlib.asynccontextmanager
async def fleet(manager: FakeServer, *clusters: MemberCluster) -> AsyncIterator[Told]:
    """Run the connections of one term to these MemberClusters."""
    told = Told()
    term = Term(1, "test", time.monotonic() + 3600, time.monotonic)
    members = {each.metadata.name: Member(each) for each in clusters}
    with access_of(target_of(manager.kubeconfig())) as access:
        async with Client(access) as client:
            found = Fleet(
                HURRIED, client, term, MANAGER, told.events.extend, Metrics(), lambda: clusters
            )
            task = asyncio.create_task(found.run(members))
            try:
                yield told
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def reached(condition: Callable[[], Any], seen: Callable[[], object]) -> None:
    try:
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.02)
    except TimeoutError as error:
        raise AssertionError(seen()) from error


def reason(manager: FakeServer, name: str) -> str:
    """The reason of the condition Connected, as it was written."""
    found = manager.statuses.get(name, {}).get("conditions", ())
    return next((each["reason"] for each in found if each["type"] == "Connected"), "")


async def test_a_member_that_answers_is_taken_and_its_uid_is_remembered() -> None:
    async with serving(FakeServer("uid-east")) as east, serving(FakeServer(MANAGER)) as manager:
        manager.secrets["member-east"] = east.kubeconfig()
        async with fleet(manager, cluster("east")) as told:
            await reached(
                lambda: told.up("east") and reason(manager, "east") == "Connected",
                lambda: (told.events, manager.statuses),
            )
        assert manager.statuses["east"]["uid"] == "uid-east"
        (compatible,) = (
            each for each in manager.statuses["east"]["conditions"] if each["type"] == "Compatible"
        )
        assert (compatible["status"], compatible["message"]) == ("True", "Kubernetes v1.37.0")


async def refused_as(
    expected: str, server: FakeServer, *clusters: MemberCluster, **user: Any
) -> str:
    """Connect to one server by each of the MemberClusters; returns what the last is told."""
    name = clusters[-1].metadata.name
    async with serving(server) as member, serving(FakeServer(MANAGER)) as manager:
        for each in clusters:
            manager.secrets[each.spec.kubeconfig_secret.name] = member.kubeconfig(**user)
        async with fleet(manager, *clusters) as told:
            await reached(
                lambda: reason(manager, name) == expected, lambda: (told.events, manager.statuses)
            )
            assert not told.up(name)
        return told.why_down(name)


async def test_the_manager_itself_is_refused() -> None:
    await refused_as("ItIsTheManager", FakeServer(MANAGER), cluster("east"))


async def test_another_cluster_behind_the_same_address_is_refused() -> None:
    said = await refused_as("AnotherCluster", FakeServer("uid-new"), cluster("east", "uid-old"))
    assert "uid-new" in said
    assert "uid-old" in said


async def test_two_names_of_one_cluster_are_refused() -> None:
    clusters = (cluster("east", "uid-east"), cluster("copy"))
    said = await refused_as("SameCluster", FakeServer("uid-east"), *clusters)
    assert said == "it is the cluster of MemberCluster east"


async def test_a_kubeconfig_that_runs_a_program_is_refused() -> None:
    exec_ = {"exec": {"command": "sh"}}
    said = await refused_as("KubeconfigRefused", FakeServer("uid-east"), cluster("east"), **exec_)
    assert said == "kubeconfig: user.exec is refused: a program"


async def test_a_member_without_gangoffers_is_incompatible() -> None:
    server = FakeServer("uid-east", kinds=(("ray.io", "v1", "RayCluster"),))
    said = await refused_as("Incompatible", server, cluster("east"))
    assert "GangOffer" in said


async def test_a_member_that_hangs_is_found_and_delays_no_other() -> None:
    async with (
        serving(FakeServer("uid-east")) as east,
        serving(FakeServer("uid-west")) as west,
        serving(FakeServer(MANAGER)) as manager,
    ):
        east.hangs = True
        manager.secrets = {"member-east": east.kubeconfig(), "member-west": west.kubeconfig()}
        async with fleet(manager, cluster("east"), cluster("west")) as told:
            await reached(lambda: told.up("west"), lambda: told.events)
            await reached(lambda: "no answer" in told.why_down("east"), lambda: told.events)
            west.hangs = True
            await reached(lambda: "no answer" in told.why_down("west"), lambda: told.events)
            east.hangs = False
            await reached(lambda: told.up("east"), lambda: told.events)


@pytest.mark.parametrize(
    ("told", "gangs", "age", "expected"),
    [(0, 1, 0.1, 1), (1, 2, 0.1, 1), (1, 0, 0.1, 1), (1, 0, COUNT_EVERY, 0)],
)
def test_another_number_of_gangs_is_told_at_once_or_after_a_time(
    told: int, gangs: int, age: float, expected: int
) -> None:
    assert gangs_to_tell(told, gangs, age) == expected


async def test_a_kubeconfig_is_read_again_when_it_changes() -> None:
    async with (
        serving(FakeServer("uid-east")) as east,
        serving(FakeServer("uid-other")) as other,
        serving(FakeServer(MANAGER)) as manager,
    ):
        manager.secrets["member-east"] = east.kubeconfig()
        async with fleet(manager, cluster("east", "uid-east")) as told:
            await reached(lambda: told.up("east"), lambda: told.events)
            manager.secrets["member-east"] = other.kubeconfig()
            await reached(
                lambda: reason(manager, "east") == "AnotherCluster",
                lambda: (told.events, manager.statuses),
            )

"""The coordinator keeps of watched objects only what it needs."""

import asyncio
from typing import cast

import msgspec
import pytest
from aiohttp import web
from msgspec.structs import replace
from pytest_aiohttp import AiohttpServer

from coordinator.gang.nominations import Guard
from coordinator.messages.events import ClusterGone, ClusterSeen
from coordinator.settings import PREFIX, Settings
from coordinator.shell.app import Coordinator
from coordinator.shell.sinks import ray_cluster_event
from kube.api.client import Client
from kube.api.credentials import open_access
from kube.api.watch.events import Changed
from kube.objects import core as core_objects
from kube.objects import names
from kube.objects.base import ObjectMeta, OwnerReference
from kube.objects.ray import RayCluster
from kube.ray.wrapped_by import unwrapped
from runtime.program import load_settings


def test_the_limit_of_waiting_gangs_is_that_of_the_settings() -> None:
    made = Coordinator(Settings(waiting_per_namespace=7), cast(Client, None))
    assert made.loop.state.known.waiting_limit.most == 7


def test_its_own_namespace_is_that_of_the_settings() -> None:
    made = Coordinator(Settings(namespace="gangs"), cast(Client, None))
    assert made.loop.state.known.cache.home == "gangs"


@pytest.mark.parametrize(
    ("guard", "forgets", "tells"),
    [
        (Guard.NOMINATION, True, True),
        (Guard.NOMINATION, False, False),
        (Guard.EXTENDER, True, False),
    ],
)
def test_a_new_kube_scheduler_is_told_of_nominations_where_it_would_not_know_them(
    guard: Guard, forgets: bool, tells: bool
) -> None:
    settings = Settings(guard=guard, scheduler_forgets=forgets)
    assert Coordinator(settings, cast(Client, None)).tells_each_scheduler == tells


def test_a_version_of_a_pod_is_reduced_once_whoever_tells_of_it() -> None:
    """The answer to a release and the watch say the same, in either order."""
    made = Coordinator(load_settings(Settings, PREFIX), cast(Client, None))

    def told(uid: str, version: str) -> core_objects.Pod:
        meta = {"namespace": "team", "name": "a", "uid": uid, "resourceVersion": version}
        return msgspec.convert({"metadata": meta}, core_objects.Pod)

    first = made._reduce(told("u", "7"))
    made.loop.state.known.cache.pods[first.key] = first
    assert made._reduce(told("u", "7")) is first
    assert made._reduce(told("u", "8")).resource_version == "8"
    assert made._reduce(told("another", "7")).uid == "another"


@pytest.mark.parametrize("watch", ["appwrappers", "mcadappwrappers"])
async def test_an_api_of_app_wrappers_that_is_not_served_keeps_no_gang_waiting(
    aiohttp_server: AiohttpServer, watch: str
) -> None:
    running = await aiohttp_server(web.Application())  # it knows no path
    async with Client(open_access(str(running.make_url("")))) as client:
        made = Coordinator(Settings(app_wrappers=True), client)
        reflector = made.reflectors[watch]
        task = asyncio.create_task(reflector.run())
        async with asyncio.timeout(60):
            await reflector.wait_synced()
        assert not reflector.blind
        task.cancel()


@pytest.mark.parametrize(("switched_on", "gang"), [(False, "rc"), (True, "appwrapper.a")])
def test_labels_of_wrapped_pods_have_a_meaning_where_there_are_app_wrappers(
    switched_on: bool, gang: str
) -> None:
    made = Coordinator(Settings(app_wrappers=switched_on), cast(Client, None))
    labels = {
        names.APP_WRAPPER: "a",
        names.APP_WRAPPER_UID: "u",
        names.RAY_NODE_TYPE: "worker",
    }
    owner = OwnerReference(names.RAY_API_VERSION, "RayCluster", "rc", "r", controller=True)
    meta = ObjectMeta("p", "team", labels=labels, owner_references=(owner,))
    member = made._reduce(core_objects.Pod(meta)).member
    assert member is not None
    assert member.gang.name == gang


def test_labels_alone_take_no_ray_cluster_from_its_gang() -> None:
    labels = {names.APP_WRAPPER: "a", names.APP_WRAPPER_UID: "u"}
    labelled = RayCluster(ObjectMeta("rc", "team", labels=labels))
    assert ray_cluster_event(Changed(labelled)) == ClusterSeen(labelled)
    owner = OwnerReference(names.CODEFLARE_V1BETA2, "AppWrapper", "a", "u", controller=True)
    wrapped = replace(labelled, metadata=replace(labelled.metadata, owner_references=(owner,)))
    assert isinstance(ray_cluster_event(Changed(wrapped)), ClusterGone)
    assert ray_cluster_event(Changed(wrapped), unwrapped) == ClusterSeen(wrapped)

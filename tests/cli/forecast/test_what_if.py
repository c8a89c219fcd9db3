"""`muster what-if` says what changes would do, and leaves the picture alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.__main__ import main
from cli.endings import FINE, NOT_READ, WRONG_USE
from cli.forecast.changes import Added, Changes, Quota
from cli.forecast.what_if import what_if
from cli.report.forecast.what_if import Effect, EffectReport
from kube.objects import names
from scheduling.model.gang import GangKey
from tests.cli.fitting.reader import MemoryReader, reader_of
from tests.coordinator.app_wrappers import app_wrapper, job
from tests.coordinator.builders import TEAM, Json, foreign_pod, group, node, ray_cluster
from tests.coordinator.device_world import asking, claim_template, device_class, device_slice
from tests.coordinator.ray_jobs import ray_job
from tests.coordinator.world import World
from tests.forecast.pictures import HOUR, lasting, pictured, world_of


def queue(quota: int, **spec: object) -> Json:
    rules = {"namespaceSelector": {}, "quota": {"cpu": quota}, **spec}
    return {"kind": "GangQueue", "metadata": {"name": "q"}, "spec": rules}


def effects(world: World, **changes: Any) -> dict[str, EffectReport]:
    found = what_if(pictured(world), Changes(**changes))
    return {each.name: each for each in found.effects}


def busy() -> World:
    """One gang runs for two hours; another waits for its end, and a third for that of the other."""
    gangs = [lasting("runs", 3, 2), lasting("next", 3, 1), lasting("last", 3, 1)]
    return world_of(node("a", cpu=4), queue(100), gangs=gangs)


def test_no_change_changes_nothing() -> None:
    assert effects(busy()) == {}


def test_nodes_that_are_added_have_gangs_start() -> None:
    found = effects(busy(), added=(Added(1, "a"),))
    assert {name: each.effect for name, each in found.items()} == {
        "next": Effect.STARTS,
        "last": Effect.SOONER,
    }
    assert found["last"].later_seconds is not None
    assert abs(found["last"].later_seconds + 2 * HOUR - 180) < 2


def test_a_cordoned_node_is_lost_to_those_that_wait() -> None:
    found = effects(busy(), cordoned=("a",))
    assert {name: each.effect for name, each in found.items()} == {
        "next": Effect.NO_MORE_KNOWN,
        "last": Effect.NO_MORE_KNOWN,
    }
    assert "it does not start when all others have ended" in found["next"].why


def test_a_drained_node_takes_pods_from_what_runs() -> None:
    world = world_of(node("a", cpu=4), node("b", cpu=1), gangs=[lasting("runs", 3, 2)])
    assert effects(world, drained=("a",))["runs"].effect is Effect.WAITS_FOR_PODS
    assert effects(world, drained=("b",)) == {}


def test_pods_of_others_that_leave_are_told_of() -> None:
    world = World(node("a", cpu=4), foreign_pod("web", "a"))
    (note,) = what_if(pictured(world), Changes(drained=("a",))).notes
    assert note.startswith("1 pods of others leave a")


def test_a_stopped_gang_makes_room() -> None:
    found = effects(busy(), stopped=(GangKey(TEAM, "runs"),))
    assert {name: each.effect for name, each in found.items()} == {
        "runs": Effect.ENDS,
        "next": Effect.STARTS,
        "last": Effect.SOONER,
    }


def test_a_quota_that_is_lowered_keeps_gangs_waiting() -> None:
    world = world_of(node("a", cpu=4), queue(100), gangs=[lasting("runs", 3, 2)])
    world.create(lasting("next", 1, 1))
    world.settle(seconds=60)
    found = effects(world, quotas=(Quota("q", "cpu", "1"),))
    assert found["next"].effect is Effect.NO_MORE_KNOWN


def test_devices_are_told_before_and_after() -> None:
    world = World(node("a", cpu=8, gpu=8), node("b", cpu=8, gpu=8))
    (found,) = what_if(pictured(world), Changes(cordoned=("a",), added=(Added(2, "b"),))).devices
    assert (found.before, found.after, found.off_after) == (16, 32, 8)
    assert (found.free_before, found.free_after) == (16, 24)


# ---- the command


def run(reader: MemoryReader, *options: str, given: Json | None = None) -> Result:
    @asynccontextmanager
    async def opened(_: Any) -> AsyncIterator[MemoryReader]:
        yield reader

    text = msgspec.json.encode(given).decode() if given else None
    return CliRunner().invoke(main, ["what-if", *options], input=text, obj=opened)


def test_a_file_is_submitted_beside_changes() -> None:
    world = world_of(node("a", cpu=4), queue(4), gangs=[lasting("runs", 3, 0)])
    asked = lasting("train", 3, 1)
    before = len(world.api.history)
    result = run(reader_of(world), "-f", "-", "--json", given=asked)
    assert result.exit_code == FINE, result.output
    (found,) = msgspec.json.decode(result.stdout)["effects"]
    assert (found["name"], found["effect"], found["sure"]) == ("train", "NoMoreKnown", "Unknown")
    options = ("-f", "-", "--add-nodes", "1=a", "--quota", "q:cpu=8", "--json")
    result = run(reader_of(world), *options, given=asked)
    (found,) = msgspec.json.decode(result.stdout)["effects"]
    assert (found["name"], found["effect"]) == ("train", "StartsNow")
    assert len(world.api.history) == before, "it changed something"


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (app_wrapper("wrapped", job("work", 3, cpu=1)), "appwrapper.wrapped"),
        (ray_job("nightly", lasting("nightly", 3, 1)), "nightly"),
    ],
)
def test_other_kinds_are_submitted_too(asked: Json, name: str) -> None:
    world = world_of(node("a", cpu=4), queue(100), gangs=[lasting("runs", 3, 2)])
    result = run(reader_of(world), "-f", "-", "--json", given=asked)
    assert result.exit_code == FINE, result.output
    (found,) = msgspec.json.decode(result.stdout)["effects"]
    assert found["name"].startswith(name)
    assert found["sure"] == "Forward"
    assert found["why"].startswith("after RayCluster team/runs ends")
    result = run(reader_of(world), "-f", "-", "--add-nodes", "1=a", "--json", given=asked)
    (found,) = msgspec.json.decode(result.stdout)["effects"]
    assert found["effect"] == "StartsNow"


def test_what_claims_devices_is_submitted_too() -> None:
    claims = asking("one")
    offered = device_slice("a", 3), device_class(), claim_template("one")
    world = World(node("a", cpu=64), queue(100), *offered)
    said = {names.EXPECTED_DURATION: "2h"}
    world.create(ray_cluster("runs", group("w", 3, **claims), annotations=said))
    world.settle(seconds=60)
    asked = ray_cluster("train", group("w", 2, **claims))
    result = run(reader_of(world), "-f", "-", "--json", given=asked)
    assert result.exit_code == FINE, result.output
    (found,) = msgspec.json.decode(result.stdout)["effects"]
    assert (found["name"], found["sure"]) == ("train", "Forward")
    assert found["why"].startswith("after RayCluster team/runs ends")


def test_the_table_names_the_changes_and_the_picture() -> None:
    result = run(reader_of(busy()), "--add-nodes", "1=a")
    assert "if: add 1 nodes like a" in result.stdout
    assert "of the picture of " in result.stdout
    assert "starts now" in result.stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "what is to be changed? allowed: --cordon"),
        (("--add-nodes", "100000=a"), "100000 nodes; allowed: 5000 at most in all"),
        (("--add-nodes", "0=a"), "--add-nodes 0=a: allowed: N=NODE, such as 4=gpu-1"),
        (("--add-nodes", "a"), "allowed: N=NODE"),
        (("--add-nodes", "2=z"), "--add-nodes z: there is no such node; there are: a"),
        (("--cordon", "z"), "--cordon z: there is no such node; there are: a"),
        (("--drain", ""), '--drain "": allowed: the name of a node'),
        (("--quota", "q=4"), "--quota q=4: allowed: QUEUE:RESOURCE=AMOUNT"),
        (("--quota", "q:cpu=much"), "much"),
        (("--quota", "z:cpu=4"), "--quota z: no such GangQueue; there are: q"),
        (("--stop", "a/b/c"), "--stop a/b/c: allowed: GANG or NAMESPACE/GANG"),
        (("--stop", "none"), "--stop team/none: there is no such gang"),
        (("-f", "/nowhere"), "/nowhere: No such file or directory"),
    ],
)
def test_what_cannot_be_asked_is_told(options: tuple[str, ...], said: str) -> None:
    result = run(reader_of(World(node("a"), queue(4))), *options)
    assert result.exit_code == WRONG_USE
    assert said in result.stderr


def test_without_rights_there_is_no_forecast() -> None:
    reader = reader_of(busy(), forbidden={"pods"})
    result = run(reader, "--cordon", "a")
    assert result.exit_code == NOT_READ
    assert "a forecast needs all nodes, pods, Gangs, Ray clusters and GangQueues" in result.stderr
    assert "may not list: pods" in result.stderr

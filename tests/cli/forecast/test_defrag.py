"""`muster defrag` names moves that let a waiting gang start, and makes none."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli.__main__ import main
from cli.endings import FINE, NOT_READ, WRONG_USE
from cli.forecast.defrag import advise
from cli.read.forecast import asking
from cli.report.forecast.defrag import DefragReport
from forecast.estimates import stamp
from kube.objects import names
from scheduling.model.gang import GangKey
from tests.cli.fitting.reader import MemoryReader, reader_of
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, group, node, ray_cluster
from tests.coordinator.replica import WALL
from tests.coordinator.world import World
from tests.forecast.pictures import HOUR, moment_of, pictured, world_of
from tests.packaging.tree import ROOT

LARGE = GangKey(TEAM, "large")


def workers(name: str, gpu: int, count: int = 1) -> Json:
    """A gang of workers with so many GPUs each."""
    return ray_cluster(name, group("workers", count, cpu=1, gpu=gpu), annotations={})


def checkpoint(written: str) -> dict[str, str]:
    return {names.LAST_CHECKPOINT: written}


def scattered(**two: Any) -> World:
    """Two nodes with 4 of 8 GPUs free each, and a gang with a worker of 8 that waits.

    `one` runs for 4 hours longer than `two`.
    """
    spec: Json = {"namespaceSelector": {}, "quota": {"nvidia.com/gpu": 20}}
    queue = {"kind": "GangQueue", "metadata": {"name": "research"}, "spec": spec}
    nodes = [node(f"gpu-{at}", cpu=64, gpu=8) for at in range(2)]
    world = world_of(*nodes, queue, gangs=[workers("one", 4), workers("fills", 4)])
    world.settle(seconds=4 * HOUR)
    two = {"annotations": {}, **two}
    world.create(ray_cluster("two", group("workers", 1, cpu=1, gpu=4), **two))
    world.settle(seconds=HOUR)
    world.delete("rayclusters", "fills")
    world.settle(seconds=60)
    world.create(workers("large", 8))
    world.settle(seconds=HOUR)
    return world


@cache
def still() -> World:
    """The same, for tests that only read it."""
    return scattered()


def advice(world: World, wanted: GangKey | None = LARGE) -> DefragReport:
    return advise(pictured(world), wanted)


def test_the_gang_that_loses_least_is_moved_to_the_node_of_the_other() -> None:
    found = advice(still())
    assert found.start is not None, found.why
    (move,) = found.moves
    assert (move.name, move.gpus, found.is_cheapest) == ("two", 4, True)
    assert abs(move.lost_gpu_hours - 8.07) < 0.1
    assert sum(each.pods for each in move.sources) == 2
    assert sum(each.pods for each in move.targets) == 2
    assert found.start.gpus == 8
    assert abs(found.start.waited_seconds - HOUR) < 61
    assert "nothing tells when" in found.start.why


def test_what_is_moved_as_the_plan_says_starts_the_gang_and_runs_again() -> None:
    world = scattered()
    (move,) = advice(world).moves
    assert world.status("large")["phase"] == "Queued"
    world.edit(move.name, suspend=True)
    world.settle(seconds=60)
    world.edit(move.name, suspend=False)
    world.settle(seconds=60)
    phases = {name: world.status(name)["phase"] for name in ("one", "two", "large")}
    assert phases == dict.fromkeys(phases, "Running")


def test_without_a_name_the_best_gang_is_found() -> None:
    found = advice(still(), None)
    assert found.start is not None
    assert (found.start.name, found.tried) == ("large", ("team/large",))


def test_a_checkpoint_has_less_lost() -> None:
    world = scattered()
    now = moment_of(world)
    one = world.api.get(Key("rayclusters", TEAM, "one"))
    written = stamp(now.wall - HOUR / 2)
    world.api.change(one, lambda obj: obj["metadata"]["annotations"].update(checkpoint(written)))
    world.settle(seconds=1)
    found = advice(world)
    (move,) = found.moves
    assert (move.name, move.is_checkpoint, move.since) == ("one", True, written)
    assert abs(move.lost_gpu_hours - 2) < 0.05


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("yesterday", "'yesterday' is not a time; allowed: when it was written, in RFC 3339"),
        ("2026-01-01", "'2026-01-01' is not a time"),
        ("2026-01-01T00:00:00", "is not a time"),
        ("2999-01-01T00:00:00Z", "is yet to come"),
        ("", "'' is not a time"),
    ],
)
def test_a_checkpoint_that_is_none_is_told_and_does_not_count(written: str, said: str) -> None:
    found = advice(scattered(annotations=checkpoint(written)))
    (note,) = found.notes
    assert note.startswith("team/two: muster.dev/last-checkpoint: ")
    assert said in note
    (move,) = found.moves
    assert not move.is_checkpoint
    assert abs(move.lost_gpu_hours - 8.07) < 0.1


def test_no_plan_where_all_nodes_together_have_too_little() -> None:
    world = scattered()
    world.create(workers("mine", 4, count=3))
    world.settle(seconds=60)
    found = advice(world, GangKey(TEAM, "mine"))
    assert found.start is None
    assert found.why == (
        "no moves help team/mine: it needs 12 nvidia.com/gpu, and 8 are free on all nodes"
    )


def test_no_plan_where_nothing_may_be_moved() -> None:
    topology = {names.TOPOLOGY_REQUIRED: "kubernetes.io/hostname"}
    nodes = [node(f"gpu-{at}", cpu=64, gpu=8) for at in range(2)]
    gangs = [workers("one", 5), workers("two", 5)]
    for each in gangs:
        each["metadata"]["annotations"] = topology
    for each in nodes:
        each["metadata"]["labels"]["kubernetes.io/hostname"] = each["metadata"]["name"]
    found = advice(world_of(*nodes, gangs=[*gangs, workers("large", 6)]))
    assert found.start is None
    assert found.why == (
        "no moves help team/large: it needs 6 nvidia.com/gpu of 6 free, and does not fit with any "
        "of the 0 gangs moved that may be; 2 may not"
    )
    assert {each.name: each.why for each in found.left_out} == {
        "one": "it asks for a topology",
        "two": "it asks for a topology",
    }


def test_moves_do_not_help_against_quota() -> None:
    world = scattered()
    world.create(workers("mine", 8, count=2))
    world.settle(seconds=60)
    found = advice(world, GangKey(TEAM, "mine"))
    assert found.start is None
    assert "it does not wait for room on nodes alone: QuotaExceeded: " in found.why


def test_a_search_that_is_cut_short_says_so() -> None:
    found = advise(pictured(still()), LARGE, steps=10)
    assert found.start is None
    assert "before the search ended at its bound: it needs 8 nvidia.com/gpu of 8 free" in found.why


def test_moves_are_sought_on_a_picture_at_rest_whatever_the_cpu_time() -> None:
    """A start without moves takes time to work out; without any the plan is still the same."""
    world = scattered()
    world.api.create(node("gpu-2", cpu=64, gpu=4))
    world.create(workers("fits", 4))
    picture, passed = pictured(world), count()
    hasty = replace(picture, seconds=0.0, spent=lambda: float(next(passed)))
    found = advise(picture, LARGE)
    assert found.moves
    assert advise(hasty, LARGE).moves == found.moves


# ---- the command


def run(reader: MemoryReader, *options: str) -> Result:
    @asynccontextmanager
    async def opened(_: Any) -> AsyncIterator[MemoryReader]:
        yield reader

    return CliRunner().invoke(main, ["defrag", *options], obj=opened)


def test_the_command_changes_nothing() -> None:
    world = still()
    before = len(world.api.history)
    result = run(reader_of(world), "team/large", "--json")
    assert result.exit_code == FINE, result.stderr
    found = msgspec.json.decode(result.stdout)
    assert [each["name"] for each in found["moves"]] == ["two"]
    assert found["moves"][0].keys() >= {"from", "to", "lostGpuHours"}
    assert len(world.api.history) == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none", "team/none: there is no such gang; those that wait: team/large"),
        ("one", "team/one: it does not wait; allowed: a gang that waits for room"),
        ("a/b/c", "a/b/c: allowed: GANG or NAMESPACE/GANG"),
        ("/large", "/large: allowed: GANG or NAMESPACE/GANG"),
    ],
)
def test_what_cannot_be_asked_is_told(name: str, said: str) -> None:
    result = run(reader_of(still()), name, "-n", "team")
    assert result.exit_code == WRONG_USE
    assert said in result.stderr


def test_without_rights_there_is_no_advice() -> None:
    result = run(reader_of(still(), forbidden={"pods"}))
    assert result.exit_code == NOT_READ
    assert "may not list: pods" in result.stderr


def test_where_nothing_waits_that_is_said() -> None:
    result = run(reader_of(World(node("a"))))
    assert result.exit_code == FINE
    assert "no gang waits for room on nodes" in result.stdout


def test_the_page_shows_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "defragmentation.md").read_text(encoding="utf-8")
    ((command, said),) = re.findall(
        r"^```\n\$ muster (.*?)\n(.*?)^```", text, re.MULTILINE | re.DOTALL
    )
    world = still()
    monkeypatch.setattr(asking, "moment", lambda: moment_of(world))
    monkeypatch.setattr(time, "time", lambda: WALL + world.api.now)
    result = run(reader_of(world), *command.split()[1:])
    assert [each.rstrip() for each in result.stdout.splitlines()] == said.splitlines()

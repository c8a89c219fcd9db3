"""docs/foresee.md shows what the commands print."""

import re
import shlex
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from click.testing import CliRunner

from cli.__main__ import main
from cli.read.forecast import asking
from tests.cli.fitting.reader import reader_of
from tests.coordinator.builders import Json, node
from tests.coordinator.replica import WALL
from tests.coordinator.world import World
from tests.forecast.pictures import HOUR, gpu_gang, moment_of, world_of
from tests.packaging.tree import ROOT

TEXT = (ROOT / "docs" / "foresee.md").read_text(encoding="utf-8")
OUTPUTS = re.findall(r"^```\n\$ muster (.*?)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def shown() -> World:
    """Three nodes of 8 GPUs: one gang runs, three wait, of which one says nothing of its end."""
    spec: Json = {"namespaceSelector": {}, "quota": {"nvidia.com/gpu": 24}}
    queue = {"kind": "GangQueue", "metadata": {"name": "research"}, "spec": spec}
    nodes = [node(f"gpu-{at}", cpu=64, gpu=8) for at in range(3)]
    world = world_of(*nodes, queue, gangs=[gpu_gang("train", 2, 6.0)])
    world.settle(seconds=4 * HOUR)
    for each in (gpu_gang("tune", 3, 2.0), gpu_gang("eval", 2, 0), gpu_gang("large", 3, 1.0)):
        world.create(each)
        world.settle(seconds=60)
    return world


@pytest.fixture(scope="module")
def world() -> World:
    return shown()


async def no_events(*_: Any) -> tuple[()]:
    """Stand in for the Events of a gang, which a forecast does not read."""
    return ()


@pytest.mark.parametrize(("command", "said"), OUTPUTS, ids=[each for each, _ in OUTPUTS])
def test_an_output_of_the_page_is_what_the_command_prints(
    world: World, command: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    @asynccontextmanager
    async def opened(_: Any) -> AsyncIterator[Any]:
        yield reader_of(world)

    monkeypatch.setattr("cli.read.case.read_events", no_events)
    monkeypatch.setattr(asking, "moment", lambda: moment_of(world))
    monkeypatch.setattr(time, "time", lambda: WALL + world.api.now)
    monkeypatch.setattr(time, "thread_time", lambda: 0.0)
    done = CliRunner().invoke(main, shlex.split(command), obj=opened)
    assert done.exit_code == 0, done.stderr
    assert [line.rstrip() for line in done.stdout.splitlines()] == said.splitlines()


def test_the_page_shows_all_three_commands() -> None:
    assert {command.split()[0] for command, _ in OUTPUTS} == {"why", "queue", "what-if"}

"""Gangs that start together on the real control plane: all of a group at once, or none."""

from pathlib import Path

import pytest
import yaml

from kube.objects import names
from testbed.recorder import Recorder
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group
from tests.controlplane.test_held_starts import had_pods, suspended
from tests.packaging.shell_blocks import fenced

PAGE = Path(__file__).parents[2] / "docs" / "together.md"
PAIR = {names.TOGETHER: "pair", names.TOGETHER_SIZE: "2"}


def member(name: str, workers: int, **more: str) -> Json:
    return gang(name, group(replicas=workers), annotations=PAIR | more)


def stamp(plot: Plot, name: str) -> str:
    return str(plot.status(name).get("together", {}).get("stamp", ""))


def test_the_pair_of_the_page_starts_whole_once_both_are_there(
    plot: Plot, recorder: Recorder
) -> None:
    """Until then it says for whom it waits, in the words of the page, and has no pods."""
    (text,) = fenced(PAGE, "yaml")
    trainer, feeder = yaml.safe_load_all(text)
    plot.add_node(4)
    plot.create(trainer)
    status = plot.wait_phase("trainer", "Queued", "WaitsForMembers")
    assert f"    {status['reason']}: {status['message']}\n" in PAGE.read_text()
    assert suspended(plot, "trainer")
    assert not had_pods(recorder, plot, "trainer")

    plot.create(feeder)
    plot.wait_running("trainer", 3)
    plot.wait_running("feeder", 1)
    assert stamp(plot, "trainer") == stamp(plot, "feeder") != ""


@pytest.mark.long
def test_where_one_ends_the_other_is_stopped_and_they_start_again_together(plot: Plot) -> None:
    """In the words of the page; RayClusters are deleted, suspended and made by the real KubeRay."""
    ends = {names.TOGETHER_END: names.TOGETHER_ALL}
    plot.add_node(5)
    plot.create(member("trainer", 1, **ends))
    plot.create(member("feeder", 1, **ends))
    for each in ("trainer", "feeder"):
        plot.wait_running(each, 2)
    before = stamp(plot, "trainer")

    plot.delete_whole("feeder")
    said = "member feeder is gone; all members are stopped, to wait for each other again"
    status = plot.wait_phase("trainer", "Queued", "WaitsForMembers", saying=said)
    assert f"    MemberEnded: {said} ({names.TOGETHER_END}: All)\n" in PAGE.read_text()
    assert suspended(plot, "trainer")
    plot.wait(lambda: not plot.pods("trainer"), "all pods of the trainer to be gone")
    assert "position" not in status

    plot.wait_gone("RayCluster", "feeder")
    plot.create(member("feeder", 1, **ends))
    for each in ("trainer", "feeder"):
        plot.wait_running(each, 2)
    assert stamp(plot, "trainer") == stamp(plot, "feeder") not in ("", before)

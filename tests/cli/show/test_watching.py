"""A look on a terminal: what has no room is left out from the gangs, and counted."""

import io

import pytest
from rich.console import Console

from cli.report.snapshot import Snapshot
from cli.report.status import status_report
from cli.show.status import looks
from cli.show.watching import fitting
from tests.cli.objects import GPU, gang, node, placement, queue

MESSAGE = (
    "1 of 3 workers fit: each needs 8 nvidia.com/gpu on one node, the gang 24 in all; 8 are free"
)


def look(width: int, height: int, output: str = "table", *, terminal: bool = True) -> list[str]:
    waiting = [
        gang(f"train-{at:02}", position=at + 1, reason="InsufficientResources", message=MESSAGE)
        for at in range(30)
    ]
    running = [gang(f"runs-{at:02}", "Running", placement=placement(a=1)) for at in range(30)]
    found = Snapshot(
        gangs=(*waiting, *running),
        queues=(queue("research", {GPU: 16}, usage={GPU: "8"}),),
        nodes=(node("a"), node("b")),
    )
    console = Console(
        file=io.StringIO(), force_terminal=terminal, width=width, height=height, no_color=True
    )
    return fitting(console, looks(status_report(found), output, 0.0)).splitlines()


@pytest.mark.parametrize("output", ["table", "wide"])
@pytest.mark.parametrize(
    ("width", "height"), [(60, 50), (80, 24), (80, 50), (120, 40), (200, 24), (200, 50)]
)
def test_queues_and_devices_are_in_sight_and_gangs_as_far_as_there_is_room(
    width: int, height: int, output: str
) -> None:
    lines = look(width, height, output)
    said = "\n".join(lines)
    assert len(lines) < height
    assert "queues" in said
    assert "POOL" in said
    shown = said.count("team/train-")
    assert f"and {30 - shown} more" in said
    assert output == "wide" or len(lines) > height - 6 or shown == 20, "there was room for one more"


def test_what_is_no_terminal_gets_all() -> None:
    assert len(look(80, 24, "wide", terminal=False)) > 60


def test_a_terminal_of_few_lines_shows_numbers_alone() -> None:
    said = "\n".join(look(200, 12))
    assert said.count("team/train-") == 0
    assert "and 30 more" in said
    assert "POOL" in said

"""The benchmark of verdicts, on a small world."""

import random
from pathlib import Path

import pytest

from benchmarks.verdict import HEAD, ON_CPUS, ON_GPUS, World, main, numpy_passes, python_loop
from scheduling.model.node import Node
from scheduling.state.node_table import node_snapshot_of


def test_a_world_is_the_same_for_the_same_seed() -> None:
    """Sixty shapes; nothing is bound that does not fit."""
    assert len({*ON_GPUS, *ON_CPUS}) == 60
    first, again = (World(20, 10, random.Random(3)) for _ in range(2))
    assert (first.columns().free >= 0).all()
    assert (first.columns().free == again.columns().free).all()
    assert first.waiting == again.waiting


def test_settling_and_leaving_move_room() -> None:
    """An admitted gang no longer waits; a pod that leaves frees its room."""
    world = World(20, 30, random.Random(3))
    waiting = len(world.waiting)
    assert world.settle() == waiting - len(world.waiting)
    before = world.columns().free.sum()
    world.leave()
    assert world.columns().free.sum() > before


@pytest.mark.parametrize(("count", "fits"), [(15, True), (16, False)])
def test_the_floors_answer_the_same_question(count: int, fits: bool) -> None:
    """A head takes the CPU of one worker on the first of two nodes."""
    amounts = {"cpu": 32_000, "memory": 2**40, "nvidia.com/gpu": 8, "pods": 110}
    nodes = [Node(name, {}, (), unschedulable=False, allocatable=amounts) for name in "ab"]
    columns = node_snapshot_of(nodes)
    assert numpy_passes(columns, (HEAD, ON_GPUS[0])) == [32, 16]
    assert python_loop(columns, HEAD, ON_GPUS[0], count) is fits


@pytest.mark.long
def test_tables_and_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line per size of cluster in each table."""
    picture = tmp_path / "out.png"
    main(["--nodes", "20", "30", "--gangs", "12", "--plot", str(picture)])
    printed = capsys.readouterr().out
    assert printed.count("\n| 20 ") >= 3
    assert printed.count("\n| 30 ") >= 3
    assert picture.stat().st_size > 0

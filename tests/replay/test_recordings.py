"""The recordings of this folder give the same actions again, whatever strings hash to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator.replay.lines import open_recording
from coordinator.replay.player import play
from tests.replay.recorded import FOLDER, RECORDINGS, path_of

MOST_BYTES = 200_000


def replayed(path: Path, seed: int, *options: str) -> subprocess.CompletedProcess[str]:
    """Play a recording in a process with a hash seed of its own."""
    return subprocess.run(
        [sys.executable, "-m", "coordinator.replay", str(path), *options],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_gives_the_same_actions_again(name: str) -> None:
    """Where another action is meant, `make recordings`, and read what changes in the stories."""
    played = play(open_recording(path_of(name)))
    assert played.difference == ()
    assert played.steps > 30
    assert played.actions > 10


@pytest.mark.parametrize("seed", [0, 1])
def test_it_does_so_in_another_process_with_other_hashes(seed: int) -> None:
    done = replayed(path_of("preempted"), seed)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(" actions, all the same\n")


@pytest.mark.parametrize("name", RECORDINGS)
def test_it_is_what_its_world_gives_today(name: str, tmp_path: Path) -> None:
    """Or the worlds are others now: `make recordings`."""
    made = RECORDINGS[name]().write(tmp_path / "made.jsonl")
    assert made.read_bytes() == path_of(name).read_bytes()


def test_they_are_small_and_all_of_them_are_played() -> None:
    files = list(FOLDER.iterdir())
    assert sorted(each.stem for each in files) == sorted(RECORDINGS)
    assert sum(each.stat().st_size for each in files) < MOST_BYTES

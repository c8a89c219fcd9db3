"""A recording never harms the coordinator that makes it, and says when it ends."""

import asyncio
import errno
import os
import stat
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from coordinator.messages.actions import Action
from coordinator.messages.events import ClusterSeen, Event, NodeGone, TermStarted
from coordinator.replay import recorder as module
from coordinator.replay.lines import open_recording
from coordinator.replay.recorder import Recorder
from coordinator.shell.loop import Loop
from coordinator.state_machine import CoordinatorState
from kube.objects.base import ObjectMeta
from kube.objects.ray import RayCluster
from runtime.controller.moment import Moment
from runtime.errors import CannotRunError
from tests.children import child
from tests.replay.recorded import path_of

MOMENT = Moment(1.5, "2026-01-01T00:00:00Z", 1767225600.5)
SETTINGS = open_recording(path_of("held")).settings
LARGE = 1 << 30

Make = Callable[..., Recorder]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Recorders to the file `r`, closed in the end."""
    made: list[Recorder] = []

    def make(limit: int = LARGE, name: str = "r") -> Recorder:
        made.append(Recorder(tmp_path / name, limit, "a test", SETTINGS))
        return made[-1]

    yield make
    for each in made:
        each.close()


def steps(path: Path) -> list[list[Event]]:
    return [each.events for each in open_recording(path).steps()]


def test_what_was_handed_over_is_read_again(make: Make, tmp_path: Path) -> None:
    recorder = make()
    told: list[list[Event]] = [[NodeGone(f"n{at}")] for at in range(500)]
    for events in told:
        recorder.step(MOMENT, events, [])
    recorder.close()
    assert steps(tmp_path / "r") == told
    found = open_recording(tmp_path / "r")
    assert (found.settings, found.muster) == (SETTINGS, "a test")
    assert {each.moment for each in found.steps()} == {MOMENT}


def test_only_its_owner_may_read_it(make: Make, tmp_path: Path) -> None:
    make()
    assert stat.S_IMODE((tmp_path / "r").stat().st_mode) == 0o600


def test_the_recording_of_the_start_before_is_kept(make: Make, tmp_path: Path) -> None:
    """A coordinator that failed is started again, and what it failed on is wanted."""
    for name in "abc":
        recorder = make()
        recorder.step(MOMENT, [NodeGone(name)], [])
        recorder.close()
    assert steps(tmp_path / "r") == [[NodeGone("c")]]
    assert steps(tmp_path / "r.1") == [[NodeGone("b")]]


@pytest.mark.parametrize("place", ["none/r", ".", "link"])
def test_a_path_that_cannot_be_written_is_one_error(tmp_path: Path, place: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CannotRunError, match=f"recording to {tmp_path}.*allowed is a file in"):
        Recorder(tmp_path / place, LARGE, "a test", SETTINGS)
    assert not (tmp_path / "elsewhere").exists()


def full_after(count: int) -> Callable[[int, Any], int]:
    """A disk that takes so many writes."""
    write = os.write

    def writes(file: int, data: Any) -> int:
        nonlocal count
        count -= 1
        if count < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data)

    return writes


def test_a_disk_that_is_full_at_the_start_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", full_after(0))
    with pytest.raises(CannotRunError, match="No space left on device"):
        Recorder(tmp_path / "r", LARGE, "a test", SETTINGS)


def test_a_disk_that_is_full_later_ends_the_recording_alone(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with capture_logs() as logs:
        monkeypatch.setattr(os, "write", full_after(1))
        recorder = make()
        recorder.step(MOMENT, [NodeGone("n")], [])
        recorder._writer.join(10)
        recorder.step(MOMENT, [NodeGone("n")], [])
        recorder.close()
    [said] = [each for each in logs if each["event"] == "recording ended"]
    assert (said["reason"], said["log_level"]) == ("No space left on device", "error")
    assert steps(tmp_path / "r") == []


def test_a_short_write_is_carried_on(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:7]))
    recorder = make()
    recorder.step(MOMENT, [NodeGone("n")], [])
    recorder.close()
    assert steps(tmp_path / "r") == [[NodeGone("n")]]


def test_at_its_limit_it_ends_and_says_so(make: Make, tmp_path: Path) -> None:
    with capture_logs() as logs:
        recorder = make(limit=4_000)
        for _ in range(1_000):
            recorder.step(MOMENT, [NodeGone("n")], [])
        recorder.close()
    found = open_recording(tmp_path / "r")
    kept = len(list(found.steps()))
    assert found.ended == "it has reached its limit of 4000 bytes"
    assert (tmp_path / "r").stat().st_size < 4_200
    [said] = [each for each in logs if each["event"] == "recording ended"]
    assert (said["reason"], said["steps"]) == (found.ended, kept)


def test_a_disk_that_hangs_holds_nothing_up_and_ends_it(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BEHIND", 1_000)
    monkeypatch.setattr(module, "GATHERED", 0.5)
    recorder = make()
    with capture_logs() as logs:
        for _ in range(100):
            recorder.step(MOMENT, [NodeGone("n")], [])
    assert [each["reason"] for each in logs] == ["the disk is 1000 bytes behind"]


def test_what_cannot_be_written_ends_it_and_nothing_else(make: Make, tmp_path: Path) -> None:
    recorder = make()
    with capture_logs() as logs:
        recorder.step(MOMENT, [NodeGone("n")], [])
        recorder.step(MOMENT, ["no event"], [])  # type: ignore[list-item]
        recorder.step(MOMENT, [NodeGone("n")], [])
    recorder.close()
    assert len(logs) == 1
    found = open_recording(tmp_path / "r")
    assert len(list(found.steps())) == 1
    assert found.ended.startswith("a step cannot be written: ")


def test_of_the_annotations_of_others_only_the_names_are_written(
    make: Make, tmp_path: Path
) -> None:
    """A deployment tool keeps the whole manifest there, passwords in its environment included."""
    notes = {"muster.dev/min-replicas": "w=1", "kubectl.kubernetes.io/last-applied": "hunter2"}
    recorder = make()
    cluster = RayCluster(ObjectMeta(name="a", annotations=notes))
    recorder.step(MOMENT, [ClusterSeen(cluster)], [])
    recorder.close()
    assert b"hunter2" not in (tmp_path / "r").read_bytes()
    [[found]] = steps(tmp_path / "r")
    assert isinstance(found, ClusterSeen)
    assert dict(found.cluster.metadata.annotations) == {**notes, [*notes][1]: ""}


KILLED = """
    import sys
    from pathlib import Path
    from runtime.controller.moment import Moment
    from coordinator.messages.events import NodeGone
    from coordinator.replay.lines import open_recording
    from coordinator.replay.recorder import Recorder
    settings = open_recording(Path(sys.argv[2])).settings
    recorder = Recorder(Path(sys.argv[1]), 1 << 30, "a test", settings)
    for at in range(100):
        recorder.step(Moment(float(at), "", 0.0), [NodeGone("n")], [])
    while recorder._written < recorder._given:
        pass
    print("ALL OUT", flush=True)
    while True:
        recorder.step(Moment(0.0, "", 0.0), [NodeGone("n" * 100)] * 100, [])
"""


def test_what_is_written_survives_a_kill(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", textwrap.dedent(KILLED), tmp_path / "r", path_of("held")]
    with child(list(map(str, arguments)), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while "ALL OUT" not in (line := process.stdout.readline()):
            assert line
        process.kill()
    assert len(steps(tmp_path / "r")) >= 100


# --- the loop -----------------------------------------------------------------------------------


class Failing(CoordinatorState):
    """A state machine with a bug."""

    def handle(self, _events: Iterable[Event], _moment: Moment) -> list[Action]:
        raise KeyError("bug")


async def test_the_loop_records_each_step(make: Make, tmp_path: Path) -> None:
    recorder = make()
    loop = Loop(SETTINGS.build(), 0.0, recorder)
    loop.appoint(TermStarted(1, clean=True), lambda _: None)
    loop.feed([ClusterSeen(RayCluster(ObjectMeta(name="a", namespace="team", uid="u")))])
    loop._step()
    recorder.close()
    first = steps(tmp_path / "r")[0]
    assert [type(each) for each in first[:2]] == [TermStarted, ClusterSeen]


async def test_a_step_in_which_the_state_machine_fails_is_recorded(
    make: Make, tmp_path: Path
) -> None:
    """It is the one that a bug report is about; the failure ends the loop as ever."""
    recorder = make()
    loop = Loop(Failing(), 0.0, recorder)
    loop.feed([NodeGone("n")])
    with pytest.raises(KeyError):
        await asyncio.wait_for(loop.run(), 60)
    recorder.close()
    [step] = open_recording(tmp_path / "r").steps()
    assert (step.events, step.actions, step.failed) == ([NodeGone("n")], None, "KeyError: 'bug'")


# --- the program --------------------------------------------------------------------------------


def test_the_option_comes_before_the_variable_and_a_bad_path_is_one_line(tmp_path: Path) -> None:
    """Nothing else is done before: without a cluster it would say that there is none."""
    wanted = tmp_path / "none" / "r"
    done = subprocess.run(
        [sys.executable, "-m", "coordinator", "--record", str(wanted)],
        env={**os.environ, "MUSTER_COORDINATOR_RECORD": str(tmp_path / "other")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert f"recording to {wanted}: No such file or directory; allowed is a file in" in line
    assert not (tmp_path / "other").exists()

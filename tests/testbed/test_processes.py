"""Programs are ended, frozen and restarted as asked, and do not outlive their owner."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from testbed.errors import TestbedError
from testbed.ports import PortAllocator
from testbed.processes import Process, Watchdog
from testbed.standing import Member, birth, directory_of
from testbed.waiting import wait_until
from testbed.watchdog import left_behind

SLEEPER = [sys.executable, "-c", "import signal; print('on', flush=True); signal.pause()"]
STUBBORN = "import signal; signal.signal(15, signal.SIG_IGN); print('on', flush=True)"


@pytest.fixture
def guard() -> Iterator[Watchdog]:
    watchdog = Watchdog()
    yield watchdog
    watchdog.close()


def start(guard: Watchdog, folder: Path, argv: list[str]) -> Process:
    process = Process("program", argv, os.environ, folder / "program.log", guard)
    wait_until(lambda: "on" in process.log_tail(), "the program to be on")
    return process


def test_a_killed_program_can_be_restarted(guard: Watchdog, tmp_path: Path) -> None:
    process = start(guard, tmp_path, SLEEPER)
    first = process.pid
    process.kill()
    assert process.returncode == -signal.SIGKILL
    process.restart()
    assert process.running
    assert process.pid != first
    process.stop()
    assert process.returncode == -signal.SIGTERM


def test_a_program_that_will_not_end_is_killed(guard: Watchdog, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", f"{STUBBORN}\nwhile True: signal.pause()"]
    process = start(guard, tmp_path, argv)
    process.stop(seconds=0.1)
    assert process.returncode == -signal.SIGKILL


def test_a_paused_program_can_be_stopped(guard: Watchdog, tmp_path: Path) -> None:
    process = start(guard, tmp_path, SLEEPER)
    process.pause()
    process.stop()
    assert not process.running


def test_a_program_is_woken_when_what_is_done_meanwhile_fails(
    guard: Watchdog, tmp_path: Path
) -> None:
    process = start(guard, tmp_path, SLEEPER)
    with pytest.raises(RuntimeError), process.paused():
        fail_when_frozen(process)
    wait_until(lambda: state(process) != "T", "it to be woken", 10.0)
    process.kill()


def fail_when_frozen(process: Process) -> None:
    wait_until(lambda: state(process) == "T", "it to be frozen")
    raise RuntimeError


def state(process: Process) -> str:
    """What the system says that a program does: T is stopped."""
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_program_ends_with_its_children(guard: Watchdog, tmp_path: Path) -> None:
    script = "sleep 1000 & echo on $!; wait"
    process = start(guard, tmp_path, ["/bin/sh", "-c", script])
    child = int(process.log_tail().split()[1])
    process.kill()
    wait_until(lambda: birth(child) is None, "the child to end")


def test_a_program_that_ended_by_itself_is_reported_with_its_log(
    guard: Watchdog, tmp_path: Path
) -> None:
    process = start(guard, tmp_path, ["/bin/sh", "-c", "echo on fire; exit 3"])
    assert process.wait(60) == 3
    with pytest.raises(TestbedError, match="ended with 3:\non fire"):
        process.expect_running()


def test_what_is_left_when_the_guard_closes_is_killed(tmp_path: Path) -> None:
    guard = Watchdog()
    process = start(guard, tmp_path, SLEEPER)
    guard.close()
    assert process._popen.wait(60) == -signal.SIGKILL


def test_what_was_released_lives_on(tmp_path: Path) -> None:
    guard = Watchdog()
    process = start(guard, tmp_path, SLEEPER)
    guard.release()
    assert guard._process.wait(60) == 0
    assert process.running
    os.killpg(process.pid, signal.SIGKILL)
    process._popen.wait(60)
    guard.close()


def test_the_watchdog_knows_the_processes_that_are_left() -> None:
    assert left_behind(["1\n", "2\n", "-1\n"]) == {2}
    assert left_behind(["1\n", "release\n", "2\n"]) == set()
    assert left_behind([]) == set()


def test_a_number_used_again_is_another_process() -> None:
    own = birth(os.getpid())
    assert own is not None
    assert Member("me", os.getpid(), own).alive
    assert not Member("me", os.getpid(), own + "0").alive


@pytest.mark.parametrize("name", ["", "..", "a/b", "-a", "A"])
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    with pytest.raises(TestbedError, match="a cluster's name"):
        directory_of(name)


def test_ports_are_free_and_claimed_once() -> None:
    with closing(PortAllocator()) as first, closing(PortAllocator()) as second:
        ports = [allocator.allocate() for allocator in (first, second) for _ in range(50)]
        assert len(set(ports)) == 100
        for port in ports:
            socket.create_server(("127.0.0.1", port)).close()


def test_a_port_is_claimed_once_whatever_folder_for_temporary_files_a_program_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens on it yet: the claim alone tells the others."""
    with closing(PortAllocator()) as first, closing(PortAllocator()) as other:
        held, free = first.allocate(), other.allocate()
        other.close()
        monkeypatch.setattr("random.sample", lambda *_args, **_named: [held, free])
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)  # as in a program that starts now
        with closing(PortAllocator()) as second:
            assert second.allocate() == free


def test_a_port_in_use_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(PortAllocator()) as allocator, socket.create_server(("127.0.0.1", 0)) as taken:
        used, free = taken.getsockname()[1], allocator.allocate()
        allocator.close()
        monkeypatch.setattr("random.sample", lambda *_args, **_named: [used, free])
        assert allocator.allocate() == free

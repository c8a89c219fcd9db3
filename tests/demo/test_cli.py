"""The demo ends with the right exit code, and leaves nothing but what was asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from demo import cli
from testbed.errors import TestbedError
from testbed.waiting import WAIT_SECONDS
from tests.children import child

ROOT = Path(__file__).parent.parent.parent


def environment(tmp_path: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "KEEP"}
    return {**inherited, "XDG_STATE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}


def run(module: str, *args: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *args]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def pasted(lines: str, env: dict[str, str]) -> str:
    """What a shell prints that gets these lines; it fails where the last one does."""
    command = ["sh", "-c", lines]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{lines}: {done.stdout}{done.stderr}"
    return done.stdout


def programs_in(directory: Path) -> list[str]:
    """The command lines of all running programs that name a directory."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return [line for line in lines if str(directory) in line]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[dict[str, str]]:
    env = environment(tmp_path)
    yield {**env, "KEEP": "1"}
    run("testbed", "down", "--all", env=env)


@pytest.mark.long
@pytest.mark.controlplane
def test_keep_leaves_a_cluster_that_can_be_used_and_stopped(kept: dict[str, str]) -> None:
    played = run("demo", "--scene", "2", env=kept)
    assert played.returncode == 0, played.stdout + played.stderr
    assert "\x1b" not in played.stdout
    assert "✗" not in played.stdout

    export, *shown, last = played.stdout.splitlines()[-5:]
    prefix, _, kubeconfig = export.partition("=")
    assert prefix == "export KUBECONFIG"
    assert Path(kubeconfig).exists()
    stop = "-m testbed down --name demo"
    assert last.endswith(stop)
    for line in shown:
        assert "Running" in pasted(f"{export}\n{line}", kept) or line.endswith("doctor")

    assert run("testbed", "status", env=kept).returncode == 0
    again = run("demo", "--scene", "2", env=kept)
    assert again.returncode == 1
    assert stop in again.stderr

    assert "demo is down" in run(*stop.split()[1:], env=kept).stdout
    assert not Path(kubeconfig).exists()


@pytest.mark.long
@pytest.mark.controlplane
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for programs in /proc")
def test_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "demo", "--plain"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    env = environment(tmp_path)
    with child(command, cwd=ROOT, env=env, start_new_session=True, **pipes) as demo:
        assert demo.stdout
        assert any("With the label" in line for line in demo.stdout)
        assert programs_in(tmp_path)
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=WAIT_SECONDS)
    assert demo.returncode == 130, errors
    assert "interrupted" in errors
    assert not programs_in(tmp_path)
    assert not list(tmp_path.glob("muster-demo-*"))


def test_a_cluster_that_does_not_come_up_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise TestbedError("no room for a cluster")

    monkeypatch.setattr(cli, "prepare", refuse)
    result = CliRunner().invoke(cli.main, ["--plain"], env={"KEEP": None})
    assert result.exit_code == 1
    assert result.stderr == "Error: no room for a cluster\n"


class Stub:
    """Stands in for a cluster."""

    def __init__(self, directory: Path, _display: object) -> None:
        self.logs = directory / "logs"
        self.data = directory / "data"
        for folder in (self.logs, self.data):
            folder.mkdir(parents=True)

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def remove_data(self) -> None:
        self.data.rmdir()


@pytest.mark.parametrize(("holds", "code", "kept"), [(False, 1, ["logs"]), (True, 0, [])])
def test_the_logs_stay_when_something_deviates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: bool, code: int, kept: list[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(cli, "prepare", lambda _: None)
    monkeypatch.setattr(cli, "start", Stub)
    monkeypatch.setattr(cli, "show", lambda *_: holds)
    result = CliRunner().invoke(cli.main, ["--plain"], env={"KEEP": None})
    assert result.exit_code == code
    assert [path.name for path in tmp_path.glob("muster-demo-*/cluster/*")] == kept


@pytest.mark.parametrize(
    ("here", "python"),
    [("/some/checkout", ".venv/bin/python"), ("/some/where", "/some/checkout/.venv/bin/python")],
)
def test_the_command_that_stops_it_names_the_python_that_runs(
    monkeypatch: pytest.MonkeyPatch, here: str, python: str
) -> None:
    monkeypatch.setattr(sys, "executable", "/some/checkout/.venv/bin/python")
    monkeypatch.setattr(Path, "cwd", lambda: Path(here))
    assert cli._stop_command() == f"{python} -m testbed down --name demo"


def test_there_are_nine_scenes() -> None:
    result = CliRunner().invoke(cli.main, ["--scene", "10"])
    assert result.exit_code == 2
    assert "'1', '2', '3', '4', '5', '6', '7', '8', '9'" in result.stderr

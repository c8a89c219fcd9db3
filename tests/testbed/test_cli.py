"""A person can start, look at and stop a cluster that outlives the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.waiting import wait_until

ROOT = Path(__file__).parent.parent.parent

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def testbed(tmp_path: Path) -> Iterator[Run]:
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "testbed", *args]
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )

    yield run
    run("down", "--all")


@pytest.mark.long
@pytest.mark.controlplane
def test_a_cluster_is_up_until_it_is_taken_down(testbed: Run) -> None:
    started = testbed("up", "--nodes", "3", "--gpus", "8", "--cpus", "96", "--label", "zone=a")
    assert started.returncode == 0, started.stderr
    prefix, _, kubeconfig = started.stdout.splitlines()[-1].partition("=")
    assert prefix == "export KUBECONFIG"
    assert Path(kubeconfig).exists()

    def healthy() -> bool:
        shown = testbed("status")
        return shown.returncode == 0 and shown.stdout.count(" healthy") == 6

    wait_until(
        healthy, "all programs to be shown as healthy", seen=lambda: testbed("status").stdout
    )

    again = testbed("up")
    assert again.returncode == 1
    assert "is up already" in again.stderr

    assert "default is down" in testbed("down").stdout
    assert not Path(kubeconfig).exists()
    assert "no cluster is up" in testbed("status").stdout


def test_what_is_not_up_is_not_taken_down(testbed: Run) -> None:
    assert "nothing to take down" in testbed("down").stdout
    assert testbed("down", "--name", "../x").returncode == 1


def test_a_wrong_option_is_one_line(testbed: Run) -> None:
    refused = testbed("up", "--taint", "a")
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: a taint is written")

"""A run of tests ends, whatever a test waits for, and tells which one it was."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

STAYS = """
import time, pytest

@pytest.mark.timeout(0.2)
def test_catches_its_limit_and_waits_again():
    try:
        time.sleep(1000)
    finally:
        time.sleep(1000)
"""
STAYS_IN_A_FIXTURE = """
import time, pytest

@pytest.fixture
def held():
    yield
    time.sleep(1000)

@pytest.mark.timeout(2)
def test_fails_and_its_fixture_waits(held):
    assert False
"""
ENDS = "def test_another(): pass"

LIKE_MAKE = ("-n2", "--dist=loadfile", "--max-worker-restart=0")


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    environment.pop("PYTEST_XDIST_WORKER", None)
    return subprocess.run(
        command,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


LIMITS = "[pytest]\ntimeout_grace = 1\n"


@pytest.mark.long
def test_a_worker_whose_test_goes_on_after_its_limit_ends_and_names_it(tmp_path: Path) -> None:
    """The run fails, and no test is run again, however far the other worker is."""
    (tmp_path / "pytest.ini").write_text(LIMITS)
    (tmp_path / "test_a.py").write_text(STAYS)
    (tmp_path / "test_b.py").write_text(ENDS)
    done = run(tmp_path, *LIKE_MAKE)
    crashed = "crashed while running 'test_a.py::test_catches_its_limit_and_waits_again'"
    assert done.returncode != 0
    assert crashed in done.stdout, done.stdout + done.stderr
    assert "Timeout (0:00:01.2" in done.stderr
    assert "= 1 failed" in done.stdout


@pytest.mark.long
def test_a_fixture_that_hangs_after_its_test_failed_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(LIMITS)
    (tmp_path / "test_a.py").write_text(STAYS_IN_A_FIXTURE)
    done = run(tmp_path)
    assert (done.returncode, "Timeout (0:00:03" in done.stderr) == (1, True), done.stderr


RAISES = """
import pathlib

def pytest_exception_interact():
    pathlib.Path("raised").touch()
    raise RuntimeError
"""


@pytest.mark.long
def test_a_fixture_that_hangs_after_pytest_itself_failed_ends_the_run(tmp_path: Path) -> None:
    """So it is where the limit of the test comes while pytest reports its failure."""
    (tmp_path / "pytest.ini").write_text(LIMITS)
    (tmp_path / "conftest.py").write_text(RAISES)
    (tmp_path / "test_a.py").write_text(STAYS_IN_A_FIXTURE)
    done = run(tmp_path)
    assert (tmp_path / "raised").exists()
    assert (done.returncode, "Timeout (0:00:03" in done.stderr) == (1, True), done.stderr


def test_a_run_that_takes_too_long_ends(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_a.py").write_text(STAYS)
    done = run(tmp_path, "-n1", "-o", "run_timeout=1")
    assert (done.returncode, "Timeout (0:00:0" in done.stderr) == (1, True)


def test_make_test_has_both_limits() -> None:
    text = (ROOT / "Makefile").read_text()
    assert {*LIKE_MAKE[1:]} <= {*text.split()}
    assert " -o run_timeout=$(TEST_SECONDS) " in text

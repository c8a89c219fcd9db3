"""`make help` lists every target, and the build server runs the README's command."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

from tests.packaging.tree import ROOT

MAKE = shutil.which("make")
needs_make = pytest.mark.skipif(MAKE is None, reason="make is not installed")

DOCUMENTED = {
    "help", "venv", "build", "format", "lint", "test", "test-unit", "test-long", "demo", "bench",
    "crds", "docs", "map", "lock", "wheel", "cli", "krew", "image",
    "sbom", "release-check", "release", "push",
    "clean", "test-versions",
}  # fmt: skip


def phony() -> set[str]:
    lines = re.findall(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    return {name for line in lines for name in line.split()}


def make(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    assert MAKE is not None
    mine = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        [MAKE, *arguments], cwd=cwd, env=mine, capture_output=True, text=True, check=False
    )


@needs_make
@pytest.mark.parametrize("arguments", [[], ["help"], ["-j", "4", "help"]], ids=" ".join)
def test_help_lists_every_target_with_what_it_does(arguments: list[str]) -> None:
    done = make(*arguments)
    assert done.returncode == 0, done.stderr
    told = dict(re.findall(r"^  make (\S+) +(\S.*)$", done.stdout, flags=re.MULTILINE))
    assert set(told) == phony() >= DOCUMENTED


@needs_make
def test_an_old_python_is_refused_by_name(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    old = tmp_path / "python-of-old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.10.0" || exit 1\n')
    old.chmod(0o755)
    done = make("venv", f"PYTHON={old}", cwd=tmp_path)
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr
    assert "Python 3.10.0" in done.stderr
    assert not (tmp_path / ".venv").exists()


@needs_make
def test_a_missing_python_is_told_apart(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    done = make("venv", "PYTHON=no-such-python", cwd=tmp_path)
    assert done.returncode != 0
    assert "there is no 'no-such-python' on PATH" in done.stderr


@needs_make
def test_an_image_is_called_in_lower_case() -> None:
    """As registries have it, whatever the owner of the repository is called."""
    done = make("--dry-run", "push", "REGISTRY=ghcr.io/Some-Org/Muster", "TAG=v1.2.3-RC1")
    assert done.stdout.splitlines()[-1] == "docker push ghcr.io/some-org/muster:1.2.3-RC1"


def test_make_test_tries_an_eighth_of_the_examples_and_the_same_each_time() -> None:
    """Soundness rests on their number: only test-unit tries fewer, and test-long all, new ones."""
    used = dict(
        re.findall(r'-m "(.*)" --hypothesis-profile=(\w+)', (ROOT / "Makefile").read_text())
    )
    assert used == {"not long": "repeatable", "not controlplane and not long": "quick"}
    names = ("repeatable", "quick", "muster")
    repeatable, quick, whole = (settings.get_profile(name) for name in names)
    assert (repeatable.max_examples, repeatable.derandomize) == (12, True)
    assert (quick.max_examples, whole.max_examples) == (10, 100)


def test_make_test_long_says_what_it_skips_and_why() -> None:
    """As the page's tests without a Chromium."""
    target = (ROOT / "Makefile").read_text().partition("\ntest-long:")[2].partition("\n\n")[0]
    runs = [line for line in target.splitlines() if "-m pytest" in line]
    assert len(runs) == 2
    assert all("-m pytest -rs " in line for line in runs)


def test_ci_runs_the_command_of_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    commands = [
        line
        for line in script.read_text().splitlines()
        if line.strip() and not line.startswith(("#", "set ", "cd "))
    ]
    assert commands == ["exec make test"]
    assert "`make test`" in (ROOT / "README.md").read_text()

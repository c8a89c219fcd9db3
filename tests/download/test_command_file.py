"""`make cli` writes the command as one file that needs nothing but its Python."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from cli.endings import WRONG_USE
from download.command_file import load, name
from download.preamble import BUILT_FOR, this_python
from tests.packaging.test_make import make, needs_make
from tests.packaging.test_requirements import entries
from tests.packaging.tree import ROOT, project

VERSION: str = project()["project"]["version"]


@pytest.fixture(scope="module")
def file() -> Path:
    done = make("cli", f"PYTHON={sys.executable}")
    assert done.returncode == 0, done.stderr
    return ROOT / "dist" / name(VERSION)


def call(*command: str | Path, root: Path) -> subprocess.CompletedProcess[str]:
    """Run a command where there are no packages, and no checkout."""
    environment = {"PATH": os.defpath, "HOME": str(root), "SHIV_ROOT": str(root)}
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


@needs_make
@pytest.mark.long
@pytest.mark.timeout(900)
def test_it_runs_without_a_checkout_or_an_environment(file: Path, tmp_path: Path) -> None:
    python = getattr(sys, "_base_executable", sys.executable)
    done = call(python, "-I", file, "--version", root=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"muster {VERSION}\n"), done.stderr
    done = call(python, "-I", file, "fit", "--help", root=tmp_path)
    assert done.stdout.startswith("Usage: muster fit [OPTIONS]"), done.stderr


@needs_make
@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_file_whose_compiled_packages_do_not_load_fails(file: Path, tmp_path: Path) -> None:
    load(file)
    spoilt = tmp_path / file.name
    with zipfile.ZipFile(file) as whole, zipfile.ZipFile(spoilt, "w") as less:
        for each in whole.infolist():
            if not each.filename.startswith("site-packages/orjson/orjson."):
                less.writestr(each, whole.read(each))
    with pytest.raises(subprocess.CalledProcessError):
        load(spoilt)


@needs_make
@pytest.mark.long
@pytest.mark.timeout(900)
def test_its_first_line_names_the_minor_of_its_python(file: Path) -> None:
    with file.open("rb") as opened:
        first = opened.readline().decode().strip()
    assert first == "#!/usr/bin/env python{}.{}".format(*sys.version_info)
    assert os.access(file, os.X_OK)


@needs_make
@pytest.mark.long
@pytest.mark.timeout(900)
def test_on_another_python_it_says_what_it_was_built_for(file: Path, tmp_path: Path) -> None:
    python = getattr(sys, "_base_executable", sys.executable)
    assert call(python, file, "--version", root=tmp_path).returncode == 0
    (unpacked,) = tmp_path.glob(f"*/site-packages/{BUILT_FOR}")
    unpacked.write_text("Python 3.9 on Plan9 mips\n")
    done = call(python, file, "--version", root=tmp_path)
    assert (done.returncode, done.stdout) == (WRONG_USE, "")
    assert done.stderr == (
        f"{file} was built for Python 3.9 on Plan9 mips, and this is {this_python()}. "
        f"Take the file of the release that is for this one, or call: python3.9 {file}\n"
    )


@needs_make
@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_wheel_brings_its_packages_into_an_environment_of_its_own(tmp_path: Path) -> None:
    """As pipx and uv install it."""
    python = ROOT / ".venv" / "bin" / "python"
    wheel = tmp_path / "wheel"
    subprocess.run(
        [python, "-m", "hatchling", "build", "-t", "wheel", "-d", wheel], cwd=ROOT, check=True
    )
    (found,) = wheel.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    own = tmp_path / "venv" / "bin"
    options = ("--quiet", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:")
    done = subprocess.run(
        [own / "python", "-m", "pip", "install", *options, found],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for command in ("muster", "kubectl-muster"):
        done = call(own / command, "--version", root=tmp_path)
        assert (done.returncode, done.stdout) == (0, f"muster {VERSION}\n"), done.stderr


def test_shiv_stays_out_of_what_is_shipped_and_tested() -> None:
    for each in ("runtime", "build", "dev"):
        assert "shiv" not in entries(ROOT / "requirements" / f"{each}.txt")
    assert "shiv" in entries(ROOT / "requirements" / "cli.txt")

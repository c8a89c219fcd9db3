"""The archives that people install hold the programs and nothing else."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from tests.packaging.tree import ROOT, files, programs

SECRETS = [
    "certs/tls.key",
    "certs/tls.crt",
    "certs/ca.pem",
    "certs/server.p12",
    "certs/server.pfx",
    "certs/deep/down/tls.key",
    "coordinator/kubeconfig",
    "coordinator/kubeconfig.yaml",
    "kubeconfig",
    "admin.kubeconfig",
    "webhook/ca.key",
]
PAGE = ("cli/page/assets/", {".html", ".css", ".js"})
# What no list of endings foresees. The wheel leaves these out too: it takes code only.
ODD_SECRETS = ["certs/tls.key.bak", "certs/id_ed25519", "kube/token.txt"]


def build(tree: Path, target: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", "made"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (made,) = (tree / "made").glob("*.whl" if target == "wheel" else "*.tar.gz")
    return made


def copy(tree: Path) -> None:
    """The checkout in `tree` with secrets lying about, and no .gitignore to save us."""
    for path in files():
        if path.name != ".gitignore":
            target = tree / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    for name in SECRETS + ODD_SECRETS:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("secret")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("wheel")
    copy(tree)
    return build(tree, "wheel")


@pytest.fixture(scope="module")
def wheel(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as opened:
        return opened.namelist()


@pytest.fixture(scope="module")
def installed(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel was installed, with this Python and its packages."""
    target = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target)]
    subprocess.run([*command, str(archive)], check=True)
    return target


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    tree = tmp_path_factory.mktemp("sdist")
    copy(tree)
    with tarfile.open(build(tree, "sdist")) as archive:
        return [str(PurePosixPath(*PurePosixPath(name).parts[1:])) for name in archive.getnames()]


def code() -> set[str]:
    """The modules of every program, and the files of the page, as they lie in the checkout."""
    return {
        path.relative_to(ROOT).as_posix()
        for program in programs()
        for path in files(ROOT / program)
        if path.suffix == ".py" or is_of_page(path)
    }


def is_of_page(path: Path) -> bool:
    folder, kinds = PAGE
    return path.relative_to(ROOT).as_posix().startswith(folder) and path.suffix in kinds


def test_the_wheel_holds_the_programs_and_nothing_else(wheel: list[str]) -> None:
    described = [name for name in wheel if PurePosixPath(name).parts[0].endswith(".dist-info")]
    assert set(wheel) - set(described) == code()
    assert any(name.endswith("/LICENSE") for name in described)


def test_the_programs_are_those_that_users_run() -> None:
    assert {"scheduling", "kube", "webhook", "coordinator", "certs"} <= set(programs())
    assert not {"tests", "testbed", "demo", "benchmarks"} & set(programs())


def test_the_source_archive_holds_what_the_wheel_is_built_from(sdist: list[str]) -> None:
    assert code() | {"pyproject.toml", "README.md", "LICENSE"} <= set(sdist)


@pytest.mark.parametrize("name", SECRETS)
def test_no_key_travels(name: str, wheel: list[str], sdist: list[str]) -> None:
    assert name not in wheel
    assert name not in sdist


@pytest.mark.parametrize("name", ODD_SECRETS)
def test_the_wheel_carries_no_stray_file_whatever_its_name(name: str, wheel: list[str]) -> None:
    assert name not in wheel


def test_the_wheel_installs_every_program(wheel: list[str]) -> None:
    for program in programs():
        assert f"{program}/__init__.py" in wheel


@pytest.mark.parametrize("program", ["webhook", "coordinator", "extender"])
def test_a_program_starts_by_its_name(program: str, installed: Path) -> None:
    """As far as its settings, of which one is wrong."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(installed),
        f"MUSTER_{program.upper()}_LOG_LEVEL": "loud",
    }
    command = str(installed / "bin" / f"muster-{program}")
    done = subprocess.run([command], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert f"MUSTER_{program.upper()}_LOG_LEVEL: 'loud'" in done.stderr


def test_certs_starts_by_its_name(installed: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    command = str(installed / "bin" / "muster-certs")
    done = subprocess.run(
        [command, "--help"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "muster-certs [OPTIONS] COMMAND" in done.stdout


def test_muster_starts_by_its_name(installed: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [str(installed / "bin" / "muster"), "import", "mcad", "--help"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "muster import mcad [OPTIONS]" in done.stdout

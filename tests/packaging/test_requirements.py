"""A fresh machine installs what was tested, each archive checked by its hash."""

import ast
import re
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.controlplane.rayclusters import RAY_VERSION
from tests.packaging.tree import ROOT, files, programs, project

LOCKED = ["runtime", "build", "dev"]
EVERY = sorted((ROOT / "requirements").glob("*.txt"))


def entries(path: Path) -> dict[str, tuple[Requirement, list[str]]]:
    """Package -> its pin and its hashes."""
    text = re.sub(r"^\s*#.*$", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found: dict[str, tuple[Requirement, list[str]]] = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        pin, *options = line.split(" --hash=")
        requirement = Requirement(pin.strip())
        found[canonicalize_name(requirement.name)] = requirement, [o.strip() for o in options]
    return found


def locked(name: str) -> dict[str, tuple[Requirement, list[str]]]:
    return entries(ROOT / "requirements" / f"{name}.txt")


def pin(requirement: Requirement) -> str:
    (specifier,) = requirement.specifier
    assert specifier.operator == "==", requirement
    return specifier.version


def group(name: str) -> list[Requirement]:
    """A dependency group of pyproject.toml, with what it includes."""
    wanted: list[Requirement] = []
    for item in project()["dependency-groups"][name]:
        wanted += [Requirement(item)] if isinstance(item, str) else group(item["include-group"])
    return wanted


def wanted(name: str) -> list[Requirement]:
    runtime = [Requirement(item) for item in project()["project"]["dependencies"]]
    return {"runtime": runtime, "build": group("build"), "dev": runtime + group("dev")}[name]


def test_every_lock_file_is_there() -> None:
    assert {path.stem for path in EVERY} >= {*LOCKED}


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_package_is_pinned_with_hashes(path: Path) -> None:
    found = entries(path)
    assert found
    for requirement, hashes in found.values():
        assert pin(requirement)
        assert hashes, requirement
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", item) for item in hashes), requirement


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_no_file_says_where_packages_come_from(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines
    for line in lines:
        assert "://" not in line
        assert not re.match(r"\s*(-[a-z]\b|--(?!hash=))", line), line
        assert not re.search(r"(^|[\s\"'=])(/|~|file:)", line), line


@pytest.mark.parametrize("name", LOCKED)
def test_the_pins_are_those_that_the_project_asks_for(name: str) -> None:
    found, asked = locked(name), wanted(name)
    assert asked
    for requirement in asked:
        pinned, _ = found[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(pin(pinned)), f"{requirement}: run make lock"


@pytest.mark.parametrize("name", ["runtime", "build"])
def test_what_is_tested_is_what_is_shipped(name: str) -> None:
    tested, shipped = locked("dev"), locked(name)
    assert shipped
    for package, (requirement, hashes) in shipped.items():
        assert tested[package] == (requirement, hashes)


def test_the_build_requirement_is_the_pinned_one() -> None:
    required = project()["build-system"]["requires"]
    assert required
    for item in required:
        requirement = Requirement(item)
        assert locked("build")[requirement.name][0].specifier == requirement.specifier


@pytest.mark.parametrize("package", ["aiohttp", "cryptography", "msgspec", "numpy", "orjson"])
def test_compiled_packages_are_pinned_for_all_platforms(package: str) -> None:
    _, hashes = locked("runtime")[package]
    # Four Pythons on Linux and macOS, two processors each; one machine alone gives one or two.
    assert len(hashes) >= 16


def imported() -> set[str]:
    """The distributions that the programs import, wherever in a module they do."""
    modules = {
        name.partition(".")[0]
        for program in programs()
        for path in files(ROOT / program)
        if path.suffix == ".py"
        for node in ast.walk(ast.parse(path.read_text()))
        for name in imported_by(node)
    }
    known = packages_distributions()
    return {canonicalize_name(found) for module in modules for found in known.get(module, [])}


def imported_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


FOR_OLDER_PYTHONS = {"async-timeout"}
"""What redis wants below Python 3.11.3; a lock made with a newer one would not have it."""


def test_what_is_required_at_run_time_is_imported_by_a_program() -> None:
    required = {canonicalize_name(each.name) for each in wanted("runtime")}
    assert required - imported() == FOR_OLDER_PYTHONS


def test_ray_is_installed_for_the_long_test_of_its_autoscaler_alone() -> None:
    """Of the version that the RayClusters of the tests name."""
    for name in LOCKED:
        assert "ray" not in locked(name)
    assert pin(locked("ray")["ray"][0]) == RAY_VERSION


@pytest.mark.parametrize("name", ["ray", "ray-2.52"])
def test_each_ray_of_the_tests_has_its_lock(name: str) -> None:
    (wanted,) = group(name)
    assert wanted.specifier.contains(pin(locked(name)["ray"][0])), f"{wanted}: run make lock"

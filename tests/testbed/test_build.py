"""A build is named by its inputs, done once, and never half visible."""

from __future__ import annotations

import dataclasses
import re
import stat
import threading
from pathlib import Path

import pytest

from testbed import build as building
from testbed import recipes, toolchain
from testbed.crds import Served
from testbed.errors import TestbedError
from testbed.options import Options
from testbed.recipes import (
    CERT_MANAGER,
    DEFAULT_KUBERAY,
    DEFAULT_KUBERNETES,
    HELM,
    KUBERAY,
    KUBERAY_VARIABLE,
    KUBERNETES,
    KUBERNETES_VARIABLE,
    PROMETHEUS,
    Recipe,
    Target,
    content_key,
    recipes_for,
)
from testbed.seed import ensure_seed


def silent(_line: str) -> None:
    pass


LINUX = Target("linux", "amd64")


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "modules"
    (folder / "thing").mkdir(parents=True)
    (folder / "thing" / "go.mod").write_text("module thing\n\ngo 1.21.3\n")
    (folder / "thing" / "go.sum").write_text("")
    monkeypatch.setattr(recipes, "MODULES", folder)
    return folder


THING = Recipe(name="thing", module="example.com/thing", packages=("example.com/thing/cmd",))


def test_the_key_stays_when_nothing_changes(modules: Path) -> None:
    assert content_key(THING, LINUX) == content_key(THING, LINUX)
    assert content_key(THING, LINUX).startswith("thing-")


@pytest.mark.parametrize("name", ["go.mod", "go.sum"])
def test_the_key_changes_with_the_pinned_files(modules: Path, name: str) -> None:
    before = content_key(THING, LINUX)
    path = modules / "thing" / name
    path.write_text(path.read_text() + "\n")
    assert content_key(THING, LINUX) != before


def test_the_key_changes_with_a_program_of_ours(modules: Path) -> None:
    before = content_key(THING, LINUX)
    (modules / "thing" / "main.go").write_text("package main\n")
    assert content_key(THING, LINUX) != before


@pytest.mark.parametrize(
    "changed",
    [
        dataclasses.replace(THING, ldflags="-s"),
        dataclasses.replace(THING, packages=("example.com/thing/other",)),
        dataclasses.replace(THING, assets=("samples",)),
        dataclasses.replace(THING, tags=("small",)),
    ],
)
def test_the_key_changes_with_the_recipe(modules: Path, changed: Recipe) -> None:
    assert content_key(changed, LINUX) != content_key(THING, LINUX)


def test_the_key_changes_with_the_target(modules: Path) -> None:
    keys = {content_key(THING, Target(*pair)) for pair in (("linux", "arm64"), ("darwin", "amd64"))}
    assert len(keys | {content_key(THING, LINUX)}) == 3


@pytest.mark.parametrize("kuberay", KUBERAY)
@pytest.mark.parametrize("kubernetes", KUBERNETES)
def test_every_module_is_pinned(kubernetes: str, kuberay: str) -> None:
    for recipe in recipes_for(kubernetes, kuberay):
        assert recipe.module in (recipe.directory / "go.mod").read_text()
        assert (recipe.directory / "go.sum").stat().st_size


@pytest.mark.parametrize("recipe", [PROMETHEUS, HELM, CERT_MANAGER], ids=lambda recipe: recipe.name)
def test_what_is_no_part_of_a_cluster_is_pinned(recipe: Recipe) -> None:
    pinned = (recipe.directory / "go.mod").read_text()
    assert f"{recipe.module} v" in pinned
    assert all(f"{each}\n" in pinned for each in recipe.packages)
    assert (recipe.directory / "go.sum").stat().st_size


def test_helm_says_the_version_that_is_built() -> None:
    (version,) = re.findall(r"version\.version=(\S+)", HELM.ldflags)
    assert f"{HELM.module} {version} " in (HELM.directory / "go.mod").read_text()


@pytest.mark.parametrize("kubernetes", KUBERNETES)
def test_the_version_that_is_stamped_is_the_one_that_is_built(kubernetes: str) -> None:
    recipe = KUBERNETES[kubernetes]
    required = f"k8s.io/kubernetes v{kubernetes}"
    assert required in (recipe.directory / "go.mod").read_text()
    assert f"gitVersion=v{kubernetes} " in f"{recipe.ldflags} "
    assert recipe in recipes_for(kubernetes, DEFAULT_KUBERAY)


@pytest.mark.parametrize(
    ("kubernetes", "etcd"), [("1.37.2", "3.7.3"), ("1.36.3", "3.6.16"), ("1.33.13", "3.6.16")]
)
def test_each_kubernetes_stores_in_an_etcd_of_its_time(kubernetes: str, etcd: str) -> None:
    recipe, *_ = recipes_for(kubernetes, DEFAULT_KUBERAY)
    assert recipe.renames == {"server": "etcd"}
    assert f"{recipe.module} v{etcd} " in (recipe.directory / "go.mod").read_text()


@pytest.mark.parametrize("kuberay", KUBERAY)
def test_the_version_of_kuberay_is_the_one_that_is_built(kuberay: str) -> None:
    recipe = KUBERAY[kuberay]
    assert f"{recipe.module} v{kuberay} " in (recipe.directory / "go.mod").read_text()
    assert recipe in recipes_for(DEFAULT_KUBERNETES, kuberay)


def test_one_version_is_built_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (KUBERNETES_VARIABLE, KUBERAY_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    assert Options().kubernetes == DEFAULT_KUBERNETES == "1.37.2"
    assert Options().kuberay_version == DEFAULT_KUBERAY == "1.6.2"
    monkeypatch.setenv(KUBERNETES_VARIABLE, "1.35.4")
    monkeypatch.setenv(KUBERAY_VARIABLE, "1.4.2")
    assert (Options().kubernetes, Options().kuberay_version) == ("1.35.4", "1.4.2")


def test_a_version_that_is_not_known_is_named() -> None:
    with pytest.raises(TestbedError, match=r"no Kubernetes '1\.0\.0', only: 1\.37\.2, 1\.36\.3, 1"):
        recipes_for("1.0.0", DEFAULT_KUBERAY)
    with pytest.raises(TestbedError, match=r"no KubeRay '1\.0\.0', only: 1\.6\.2, 1\.5\.1, 1"):
        recipes_for(DEFAULT_KUBERNETES, "1.0.0")


FAKE_GO = """#!/bin/sh
# Stands in for Go: `go build ... -o DIR/ PACKAGES` makes one program, unless told to fail.
[ -e "$(dirname "$0")/fails" ] && { echo "no such package"; exit 1; }
echo built >> "$(dirname "$0")/calls"
while [ "$1" != "-o" ]; do shift; done
echo program > "$2/cmd"
"""


@pytest.fixture
def fake_go(modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    go = tmp_path / "go" / "go"
    go.parent.mkdir()
    go.write_text(FAKE_GO)
    go.chmod(go.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(toolchain, "find_go", lambda *_: go)
    monkeypatch.setenv("MUSTER_TESTBED_CACHE", str(tmp_path / "cache"))
    return go


def test_a_second_build_needs_no_go(fake_go: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    program = building.build([THING], lines.append).program("cmd")
    assert program.read_text() == "program\n"
    assert any("built in" in line for line in lines)
    fake_go.unlink()
    assert building.build([THING], pytest.fail).program("cmd") == program


def test_two_builders_build_once(fake_go: Path) -> None:
    builders = [threading.Thread(target=building.build, args=([THING], silent)) for _ in range(4)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert (fake_go.parent / "calls").read_text() == "built\n"


def test_a_failed_build_says_why_and_leaves_nothing_that_looks_whole(fake_go: Path) -> None:
    (fake_go.parent / "fails").touch()
    with pytest.raises(TestbedError, match="no such package"):
        building.build([THING], silent)
    (fake_go.parent / "fails").unlink()
    assert building.build([THING], silent).program("cmd").exists()


def test_a_seed_is_grown_once_and_planted_often(fake_go: Path, tmp_path: Path) -> None:
    programs = building.build([THING], silent)
    grown: list[Path] = []

    def grow(_programs: building.Artifacts, target: Path) -> list[Served]:
        grown.append(target)
        target.mkdir()
        (target / "db").write_text("state")
        return [Served("example.com/v1", "things")]

    for place in (tmp_path / "first", tmp_path / "second"):
        seed = ensure_seed(programs, grow, silent)
        seed.plant(place)
        assert (place / "db").read_text() == "state"
        assert seed.served == [Served("example.com/v1", "things")]
    assert len(grown) == 1


def test_an_unknown_program_is_an_error(fake_go: Path) -> None:
    with pytest.raises(TestbedError, match="kubelet"):
        building.build([THING], silent).program("kubelet")


def test_the_newest_go_that_a_module_asks_for_is_needed(modules: Path, tmp_path: Path) -> None:
    newer = tmp_path / "go.mod"
    newer.write_text("module newer\n\ngo 1.26\n")
    mods = [modules / "thing" / "go.mod", newer]
    assert toolchain.needed_version(mods) == (1, 26, 0)


@pytest.mark.parametrize(
    ("text", "version"),
    [("go1.26.8", (1, 26, 8)), ("go1.27rc1", (1, 27, 0)), ("1.9", (1, 9, 0))],
)
def test_versions_of_go(text: str, version: tuple[int, ...]) -> None:
    assert toolchain.parse_version(text) == version


def test_an_old_go_outside_a_virtual_environment_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toolchain, "_candidates", list)
    monkeypatch.setattr("sys.prefix", "/usr")
    monkeypatch.setattr("sys.base_prefix", "/usr")
    with pytest.raises(TestbedError, match=r"no Go >= 1\.26\.0"):
        toolchain.find_go((1, 26, 0), silent)

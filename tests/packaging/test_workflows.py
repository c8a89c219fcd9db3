"""The workflows do what the Makefile does, with pinned actions and the least rights."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from download.krew import PLATFORMS, PYTHON
from tests.packaging.test_make import phony
from tests.packaging.tree import ROOT, project

Json = dict[str, Any]
FOLDER = ROOT / ".github" / "workflows"
PINNED = re.compile(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
WRITES = {
    ("release.yml", "image"): {"packages": "write"},
    ("release.yml", "publish"): {"contents": "write"},
}
"""The jobs that may write, and what."""

every_workflow = pytest.mark.parametrize(
    "path", sorted(FOLDER.glob("*")), ids=lambda path: path.name
)


def read(path: Path) -> Json:
    """A workflow; YAML 1.1 takes the word `on` for true."""
    found = yaml.safe_load(path.read_text())
    return {"on" if key is True else key: value for key, value in found.items()}


def steps(workflow: Json) -> Iterator[tuple[str, Json]]:
    for name, job in workflow["jobs"].items():
        yield from ((name, step) for step in job["steps"])


def test_there_is_one_for_tests_image_and_release() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {"test.yml", "image.yml", "release.yml"}


@every_workflow
def test_what_runs_is_a_target_of_the_makefile(path: Path) -> None:
    ran = [step["run"] for _, step in steps(read(path)) if "run" in step]
    assert ran
    for command in ran:
        match = re.fullmatch(r"make ([a-z-]+)", command)
        assert match, command
        assert match[1] in phony(), command


def test_each_target_is_run_where_it_belongs() -> None:
    ran = {
        path.name: [step["run"] for _, step in steps(read(path)) if "run" in step]
        for path in FOLDER.iterdir()
    }
    assert {"make test", "make test-long", "make test-unit"} == {*ran["test.yml"]}
    assert {"make image", "make wheel", "make sbom", "make cli"} <= {*ran["image.yml"]}
    order = ["make release-check", "make test", "make image", "make push", "make cli"]
    assert ran["release.yml"] == [*order, "make release"]


def test_nothing_is_published_before_the_checks_passed() -> None:
    jobs = read(FOLDER / "release.yml")["jobs"]
    assert jobs["image"]["needs"] == jobs["command"]["needs"] == "check"
    assert jobs["publish"]["needs"] == ["image", "command"]


def test_a_release_has_the_command_for_each_platform_and_python() -> None:
    """Those that krew's manifest names."""
    of = read(FOLDER / "release.yml")["jobs"]["command"]["strategy"]["matrix"]
    assert of["platform"] == ["ubuntu-24.04", "ubuntu-24.04-arm", "macos-15"]
    assert len(of["platform"]) == len(PLATFORMS)
    assert PYTHON in of["python"]
    assert f"python:{PYTHON}-slim" in (ROOT / "Dockerfile").read_text()
    assert f">={of['python'][0]}" == project()["project"]["requires-python"]


@every_workflow
def test_actions_are_pinned_with_their_version_beside(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        assert PINNED.fullmatch(line.strip().removeprefix("- ")), line


def test_an_action_has_one_version_in_all_workflows() -> None:
    texts = (path.read_text() for path in FOLDER.iterdir())
    pins = {pin for text in texts for pin in re.findall(r"uses: (\S+ # \S+)", text)}
    names = [pin.partition("@")[0] for pin in pins]
    assert len(names) == len(set(names)), sorted(pins)


@every_workflow
def test_rights_are_the_least(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        writing = {k: v for k, v in job.get("permissions", {}).items() if v != "read"}
        assert writing == WRITES.get((path.name, name), {}), name


@every_workflow
def test_no_job_keeps_a_token_or_runs_for_ever(path: Path) -> None:
    workflow = read(path)
    assert workflow["concurrency"]["group"]
    for job in workflow["jobs"].values():
        assert 0 < job["timeout-minutes"] <= 360
        assert job["runs-on"] in ("ubuntu-24.04", "${{ matrix.platform }}")
    for _, step in steps(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@every_workflow
def test_no_secret_but_the_token_and_no_rights_for_strangers(path: Path) -> None:
    text = path.read_text()
    assert set(re.findall(r"secrets\.(\w+)", text)) <= {"GITHUB_TOKEN"}
    assert not {"pull_request_target", "workflow_run"} & set(read(path)["on"])


@every_workflow
def test_nothing_that_others_name_gets_into_a_command(path: Path) -> None:
    """A branch or a tag may be named like a command of the shell."""
    for _, step in steps(read(path)):
        assert "${{" not in step.get("run", "")

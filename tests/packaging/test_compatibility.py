"""The versions that are stated are those that the testbed builds and the tests recorded."""

from __future__ import annotations

import re

import pytest

from cli.report.doctor.kubernetes import FILTER_GATES, READ, TESTED
from testbed.recipes import DEFAULT_KUBERAY, DEFAULT_KUBERNETES, KUBERAY, KUBERNETES
from tests.extender.test_recorded import VERSIONS as RECORDED
from tests.kube.test_samples import VERSIONS as SAMPLED
from tests.packaging.tree import ROOT, project
from tests.versions.plan import WHOLE

OLDEST_STATED = 31
TEXT = (ROOT / "docs" / "compatibility.md").read_text()


def stated(heading: str) -> dict[str, str]:
    """The versions below a heading, and how each was tried."""
    section = TEXT.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| ([\d.]+) \| (run|recorded|read) \| \S", section, re.MULTILINE))


def those(how: str, heading: str) -> dict[str, None]:
    """The versions that were tried so, in their order."""
    return {version: None for version, said in stated(heading).items() if said == how}


def minor(version: str) -> int:
    return int(version.split(".")[1])


def test_what_is_said_to_run_is_what_the_testbed_builds() -> None:
    assert those("run", "Kubernetes").keys() <= set(KUBERNETES)
    assert those("run", "KubeRay").keys() == set(KUBERAY)


def test_what_is_said_to_be_recorded_is_in_the_tests() -> None:
    assert those("recorded", "Kubernetes").keys() == set(RECORDED) - set(KUBERNETES)
    assert set(SAMPLED) == set(KUBERAY)


def test_every_minor_version_is_stated() -> None:
    kubernetes = {minor(version) for version in stated("Kubernetes")}
    assert kubernetes >= {*range(OLDEST_STATED, max(kubernetes) + 1), minor(DEFAULT_KUBERNETES)}
    assert next(iter(those("run", "KubeRay"))) == DEFAULT_KUBERAY


def test_each_version_that_can_be_built_is_named() -> None:
    assert [version for version in KUBERNETES if version not in TEXT] == []
    assert {*WHOLE} <= set(KUBERNETES)


def test_doctor_warns_of_all_that_was_not_run() -> None:
    assert {minor(version): version for version in those("run", "Kubernetes")} == TESTED
    not_run = {*map(minor, stated("Kubernetes"))} - TESTED.keys()
    assert {*READ} == not_run
    said = ", ".join(f"1.{each}" for each in sorted(TESTED))
    table = (ROOT / "docs" / "cli-doctor.md").read_text()
    assert f"not one that the tests [ran on](compatibility.md) ({said})" in table


def test_the_gates_that_doctor_warns_of_are_stated() -> None:
    assert [gate for gate in FILTER_GATES if f"`{gate}`" not in TEXT] == []


def test_the_chart_refuses_what_is_older_than_all_that_is_stated() -> None:
    chart = ROOT / "charts" / "muster" / "Chart.yaml"
    if not chart.is_file():
        pytest.skip("there is no chart")
    assert f'kubeVersion: ">=1.{OLDEST_STATED}.0-0"' in chart.read_text()


def test_doctor_asks_for_the_oldest_kuberay_that_was_run() -> None:
    oldest = min(KUBERAY, key=minor)
    told = (ROOT / "cli" / "report" / "doctor" / "programs.py").read_text()
    assert f"install KubeRay 1.{minor(oldest)} or newer" in told


def test_python_is_that_of_the_project_and_of_the_image() -> None:
    oldest = project()["project"]["requires-python"].removeprefix(">=")
    base = re.search(r"python:(3\.\d+)-slim", (ROOT / "Dockerfile").read_text())
    assert base is not None
    assert (
        f"Python {oldest} and newer: the tests run on {oldest}, the image is of {base[1]}" in TEXT
    )

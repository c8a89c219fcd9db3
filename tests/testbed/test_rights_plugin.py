"""A run of tests fails for rights that were refused or never used, and shows which."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from testbed.rights import Grant, Uses
from tests.rights_plugin import RARE, Rare, faults, granted, is_whole, manifest_objects

ROOT = Path(__file__).parents[2]
GRANT = Grant("Role r", "worker", "get", "apps", "deployments", "one", "home")
OTHER = GRANT._replace(verb="patch")
ROW = Rare("r", "patch", "deployments.apps", "for the sake of the example")

FILE = """
import pytest
from testbed.cluster import Cluster
from testbed.rights import Asked
from tests.rights_plugin import RARE

pytestmark = pytest.mark.controlplane

def test_refused():
    refused = Asked("muster-webhook", "list", "", "secrets", "", "", allowed=False)
    Cluster.auditor.uses.refuse([refused], "some-cluster")

def test_all_but_one_are_used():
    uses, left_out = Cluster.auditor.uses, ("muster-webhook", "watch", "namespaces")
    uses.used.update(each for each in uses.grants
                     if (each.account, each.verb, each.resource) != left_out
                     and not any(row.covers(each) for row in RARE))
"""
TITLE = "rights of Muster's service accounts"
WHOLE = ("-m", "controlplane and (variant or not long)")


def run(directory: Path, *arguments: str) -> list[str]:
    """Run a test of this file in a tree of its own; its output, and at last the exit status."""
    (directory / "tests").mkdir()
    (directory / "tests" / "test_some.py").write_text(FILE)
    (directory / "pytest.ini").write_text(
        "[pytest]\ntestpaths = tests\nmarkers =\n    long: long\n    controlplane: real\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "tests.rights_plugin", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    return [*done.stdout.splitlines(), str(done.returncode)]


def test_a_refusal_fails_every_run(tmp_path: Path) -> None:
    """Of a part of the tests, too, of which nothing is demanded; told by a worker."""
    *said, counted, status = run(tmp_path, "-n1", *WHOLE, "-k", "refused")
    assert (status, "1 passed" in counted) == ("1", True), said
    at = next(at for at, line in enumerate(said) if TITLE in line)
    assert said[at + 1 :] == ["refused: muster-webhook: list secrets (some-cluster)"]


@pytest.mark.long
def test_a_whole_run_fails_for_what_no_worker_used(tmp_path: Path) -> None:
    ignored = ("--override-ini=python_functions=test_all_but*",)
    *said, counted, status = run(tmp_path, "-n1", *WHOLE, *ignored)
    assert (status, "1 passed" in counted) == ("1", True), said
    at = next(at for at, line in enumerate(said) if TITLE in line)
    missing = "muster-webhook may watch namespaces (ClusterRole muster-webhook)"
    assert said[at + 1 :] == [f"no test used: {missing}"]


Source = pytest.Config.ArgsSource
EVERYTHING = {
    "keyword": "",
    "deselect": None,
    "ignore": None,
    "ignore_glob": None,
    "lf": False,
    "collectonly": False,
    "markexpr": "controlplane and (variant or not long)",
}


def test_the_run_of_make_test_rights_is_whole() -> None:
    text = (ROOT / "Makefile").read_text()
    assert f'$(PYTEST) -m "{EVERYTHING["markexpr"]}" ' in text
    assert is_whole(SimpleNamespace(**EVERYTHING), Source.TESTPATHS)


@pytest.mark.parametrize(
    "part",
    [
        {"keyword": "fine"},
        {"markexpr": ""},
        {"markexpr": "long"},
        {"markexpr": "not long"},
        {"deselect": ["tests/x.py::test"]},
        {"ignore": ["tests/faults"]},
        {"lf": True},
        {"collectonly": True},
    ],
    ids=str,
)
def test_of_a_part_of_the_tests_nothing_is_demanded(part: dict[str, Any]) -> None:
    assert not is_whole(SimpleNamespace(**{**EVERYTHING, **part}), Source.TESTPATHS)


def test_nor_of_files_that_are_named() -> None:
    assert not is_whole(SimpleNamespace(**EVERYTHING), Source.ARGS)


def test_what_is_rare_need_not_be_used() -> None:
    uses = Uses([GRANT, OTHER])
    uses.used.add(GRANT)
    (said,) = faults(uses, whole=True, rare=())
    assert said == f"no test used: {OTHER}"
    assert faults(uses, whole=True, rare=[ROW]) == []
    assert faults(uses, whole=False, rare=()) == []


def test_what_is_used_is_not_rare() -> None:
    uses = Uses([OTHER])
    uses.used.add(OTHER)
    assert faults(uses, whole=True, rare=[ROW]) == [f"used, so not rare: {OTHER}"]


def test_what_is_used_by_chance_may_be_used_or_not() -> None:
    uses = Uses([OTHER])
    row = ROW._replace(by_chance=True)
    assert faults(uses, whole=True, rare=[row]) == []
    uses.used.add(OTHER)
    assert faults(uses, whole=True, rare=[row]) == []


def test_what_is_rare_is_granted_and_says_why() -> None:
    rights = granted()
    for row in RARE:
        assert any(row.covers(each) for each in rights), row
        assert len(row.reason.split()) > 3, row


def test_every_account_of_ours_that_is_bound_is_looked_at() -> None:
    """An account without a role of ours has none to prove: its pods take no token."""
    named = {
        subject["name"]
        for each in manifest_objects()
        if each["kind"].endswith("Binding") and "subjects" in each
        for subject in each["subjects"]
        if subject["kind"] == "ServiceAccount" and subject["namespace"] == "muster-system"
    }
    assert named == {each.account for each in granted()} >= {"muster-coordinator", "muster-certs"}

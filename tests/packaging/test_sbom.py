"""The list of what is shipped names every pinned package, with its version and its hashes."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from tests.packaging.test_make import make, needs_make
from tests.packaging.test_requirements import entries, pin
from tests.packaging.tree import ROOT, project

Json = dict[str, Any]


@pytest.fixture(scope="module")
def sbom() -> Json:
    """As `make sbom` writes it; its tool holds it against the schema of CycloneDX."""
    path = ROOT / "out" / "sbom.json"
    path.unlink(missing_ok=True)
    done = make("sbom")
    assert done.returncode == 0, done.stderr
    found: Json = json.loads(path.read_text())
    return found


def hashes_of(component: Json) -> set[str]:
    return {
        f"{each['alg'].replace('-', '').lower()}:{each['content']}"
        for reference in component["externalReferences"]
        for each in reference["hashes"]
    }


@needs_make
@pytest.mark.long
@pytest.mark.timeout(900)
def test_every_pinned_package_is_in_it(sbom: Json) -> None:
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    found = {each["name"]: (each["version"], hashes_of(each)) for each in sbom["components"]}
    pinned = entries(ROOT / "requirements" / "runtime.txt")
    assert found == {
        name: (pin(requirement), set(hashes)) for name, (requirement, hashes) in pinned.items()
    }


@needs_make
@pytest.mark.long
@pytest.mark.timeout(900)
def test_it_is_that_of_this_version(sbom: Json) -> None:
    described = sbom["metadata"]["component"]
    assert (described["name"], described["version"]) == ("muster", project()["project"]["version"])
    assert [each["license"]["id"] for each in described["licenses"]] == ["Apache-2.0"]


def test_its_tool_stays_out_of_what_is_shipped_and_tested() -> None:
    """It brings thirty packages along; a release is made of the runtime's alone."""
    for name in ("runtime", "build", "dev"):
        assert "cyclonedx-bom" not in entries(ROOT / "requirements" / f"{name}.txt")
    assert "cyclonedx-bom" in entries(ROOT / "requirements" / "sbom.txt")
    assert shutil.which("cyclonedx-py", path=str(ROOT / ".venv" / "bin")) is None

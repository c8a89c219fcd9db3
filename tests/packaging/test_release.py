"""Version, CHANGELOG, tag, image and documents agree, and what disagrees is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.release import (
    DEVELOPMENT,
    faults,
    faults_of_changelog,
    faults_of_chart,
    faults_of_documents,
    faults_of_release,
    sections,
)
from tests.packaging.tree import ROOT

GOOD = """# Changelog

Text.

## [Unreleased]

## [0.2.0] - 2026-02-28

### Added

- One.

### Fixed

- Two.

## [0.1.0] - 2026-01-31

- Three.
"""


def test_this_checkout_agrees_with_itself() -> None:
    assert faults("", DEVELOPMENT) == []


def test_its_changelog_says_what_changed() -> None:
    newest = sections((ROOT / "CHANGELOG.md").read_text())[0]
    assert newest.text.count("\n- ") > 20 or len(sections((ROOT / "CHANGELOG.md").read_text())) > 1


def test_a_release_that_agrees_has_no_faults() -> None:
    assert list(faults_of_changelog(GOOD, "0.2.0")) == []
    assert list(faults_of_release(GOOD, "0.2.0", "v0.2.0", "ghcr.example/muster:0.2.0")) == []
    assert [each.kinds for each in sections(GOOD)] == [(), ("Added", "Fixed"), ()]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("## [Unreleased]\n", "", "first section"),
        ("## [0.2.0] - 2026-02-28", "## 0.2.0, in February", "0.2.0, in February"),
        ("2026-02-28", "2026-02-30", 'section "0.2.0"'),
        ("### Fixed", "### Mended", "### Mended"),
        ("[0.2.0]", "[0.0.9]", "from the newest"),
        ("[0.2.0]", "[0.3.0]", "older than"),
    ],
)
def test_what_is_wrong_in_a_changelog_is_named(before: str, after: str, said: str) -> None:
    assert before in GOOD
    [fault] = faults_of_changelog(GOOD.replace(before, after), "0.2.0")
    assert said in fault


@pytest.mark.parametrize(
    ("version", "tag", "image", "said"),
    [
        ("0.2.0", "v0.2.1", DEVELOPMENT, 'tag "v0.2.1"'),
        ("0.2.0", "0.2.0", DEVELOPMENT, 'tag "0.2.0"'),
        ("0.2.0", "v0.2.0", "muster:0.1.0", 'image "muster:0.1.0"'),
        ("0.3.0", "v0.3.0", DEVELOPMENT, "[0.3.0] - DATE"),
    ],
)
def test_a_release_that_disagrees_is_refused(version: str, tag: str, image: str, said: str) -> None:
    [fault] = faults_of_release(GOOD, version, tag, image)
    assert said in fault


@pytest.mark.parametrize(
    "text",
    [
        "make image IMAGE=registry.example.com/muster:0.1.9",
        "  newTag: 0.1.9",
        "muster:0.1.9;",
        "pipx install ./muster-0.1.9-py3-none-any.whl",
    ],
)
def test_a_document_that_names_another_version_is_named(text: str) -> None:
    [fault] = faults_of_documents({"README.md": text}, "0.2.0")
    assert fault.startswith("README.md: names an image or a file of 0.1.9")
    assert list(faults_of_documents({"README.md": text}, "0.1.9")) == []


def test_a_chart_of_another_version_is_named(tmp_path: Path) -> None:
    chart = tmp_path / "Chart.yaml"
    assert list(faults_of_chart(chart, "0.2.0")) == []
    chart.write_text("version: 0.2.0\nappVersion: 0.1.0\n")
    [fault] = faults_of_chart(chart, "0.2.0")
    assert "appVersion is 0.1.0" in fault

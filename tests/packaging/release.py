"""`python -m tests.packaging.release [--tag v0.1.0] [--notes FILE]`: checks what is released.

One version stands in many places: pyproject.toml, CHANGELOG.md, the tag, the image's tag, the
documents' commands and the chart.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import click
import yaml

from tests.packaging.tree import ROOT

KINDS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
UNRELEASED = "Unreleased"
DEVELOPMENT = "muster:dev"
"""The image of a checkout, which belongs to no release."""

_VERSION = re.compile(r"\d+\.\d+\.\d+")
_SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
_HEAD = re.compile(r"\[(?P<version>[^\]]+)\](?: - (?P<date>\S+))?")
_NAMED = re.compile(r"(?:/muster:|newTag: |\bmuster[:-])(\d+\.\d+\.\d+)\b")


@dataclass(frozen=True)
class Section:
    """What changed with one release; `version` is Unreleased for what no release has yet."""

    version: str
    day: str
    kinds: tuple[str, ...]
    text: str


def sections(changelog: str) -> list[Section]:
    """Read the sections of a changelog, the newest first."""
    parts = _SECTION.split(changelog)[1:]
    return [_section(head, text) for head, text in zip(parts[::2], parts[1::2], strict=True)]


def _section(head: str, text: str) -> Section:
    found = _HEAD.fullmatch(head)
    version, day = (found["version"], found["date"] or "") if found else (head, "")
    kinds = tuple(re.findall(r"^### (.*)$", text, flags=re.MULTILINE))
    return Section(version, day, kinds, text.strip())


def faults_of_changelog(changelog: str, version: str) -> Iterator[str]:
    """Say what of a changelog has not the form of Keep a Changelog, or another version."""
    found = sections(changelog)
    released = [each for each in found if each.version != UNRELEASED]
    if [each.version for each in found].count(UNRELEASED) != 1 or found[0].version != UNRELEASED:
        yield f'CHANGELOG.md: the first section is to be "## [{UNRELEASED}]", and no other one'
    for each in released:
        if not (_VERSION.fullmatch(each.version) and _is_day(each.day)):
            yield f'CHANGELOG.md: section "{each.version}": allowed is "## [1.2.3] - 2026-01-31"'
    for each in found:
        for kind in set(each.kinds) - {*KINDS}:
            yield f'CHANGELOG.md: "### {kind}": allowed are {", ".join(KINDS)}'
    ordered = [_numbers(each.version) for each in released if _VERSION.fullmatch(each.version)]
    if ordered != sorted(set(ordered), reverse=True):
        yield "CHANGELOG.md: releases are to stand from the newest to the oldest, each once"
    if ordered and ordered[0] > _numbers(version):
        yield f"pyproject.toml: version {version} is older than the newest of CHANGELOG.md"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def faults_of_release(changelog: str, version: str, tag: str, image: str) -> Iterator[str]:
    """Say what a release with this tag and image lacks; an empty tag releases nothing."""
    if not tag:
        return
    if tag != f"v{version}":
        yield f'tag "{tag}": pyproject.toml has version {version}, so allowed is "v{version}"'
    if image != DEVELOPMENT and image.rpartition(":")[2] != version:
        yield f'image "{image}": allowed is the tag {version}'
    if version not in [each.version for each in sections(changelog)]:
        yield f'CHANGELOG.md: there is no section "## [{version}] - DATE"'


def faults_of_documents(texts: dict[str, str], version: str) -> Iterator[str]:
    """Say which documents name an image or a file of another version."""
    for name, text in texts.items():
        for other in set(_NAMED.findall(text)) - {version}:
            yield f"{name}: names an image or a file of {other}, the version is {version}"


def faults_of_chart(chart: Path, version: str) -> Iterator[str]:
    """Say which version of the chart differs, where there is a chart."""
    if chart.is_file():
        said = yaml.safe_load(chart.read_text())
        for key in ("version", "appVersion"):
            if str(said[key]) != version:
                yield f"{chart.name}: {key} is {said[key]}, allowed is {version}"


def documents(root: Path = ROOT) -> dict[str, str]:
    """The documents that name images: all but the history of decisions."""
    paths = [*root.glob("*.md"), *(root / "docs").glob("*.md")]
    return {path.relative_to(root).as_posix(): path.read_text() for path in sorted(paths)}


def faults(tag: str, image: str) -> list[str]:
    """Say all that disagrees in this checkout."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    return [
        *faults_of_changelog(changelog, version),
        *faults_of_release(changelog, version, tag, image),
        *faults_of_documents(documents(), version),
        *faults_of_chart(ROOT / "charts" / "muster" / "Chart.yaml", version),
    ]


def notes(tag: str) -> str:
    """What the release with this tag changed."""
    found = sections((ROOT / "CHANGELOG.md").read_text())
    return next(f"{each.text}\n" for each in found if f"v{each.version}" == tag)


@click.command()
@click.option("--tag", default="", help="The tag of the release.")
@click.option("--image", default=DEVELOPMENT, help="The image of the release.")
@click.option("--notes", "to", type=click.Path(dir_okay=False, path_type=Path))
def main(*, tag: str, image: str, to: Path | None) -> None:
    """Check that all agree on the version; exit code 1 where they do not."""
    if to is not None and not tag:
        raise click.UsageError("TAG is empty; allowed is v and the version")
    said = faults(tag, image)
    for each in said:
        click.echo(each, err=True)
    if said:
        sys.exit(1)
    if to is not None:
        to.write_text(notes(tag))


if __name__ == "__main__":
    main()

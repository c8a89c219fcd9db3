"""What a release gives krew: a manifest that krew takes, and archives that have what it names.

The rules are those that krew asks of a manifest before it installs anything, and of one that is to
get into its index.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from download import krew
from download.krew import LICENSE, MANIFEST, TEMPLATE, files, main, write

Json = dict[str, Any]
REPOSITORY = "https://example.com/org/muster"
VERSION = "1.2.3"
OF_GO = {("linux", "amd64"), ("linux", "arm64"), ("darwin", "arm64")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What `make cli` wrote on each platform."""
    for name in files(VERSION):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name}\n")
    return tmp_path


def faults(name: str, manifest: Json) -> Iterator[str]:
    """Say what krew refuses in a manifest in a file of this name."""
    spec, plugin = manifest["spec"], manifest["metadata"]["name"]
    if manifest["apiVersion"] != "krew.googlecontainertools.github.com/v1alpha2":
        yield "apiVersion"
    if manifest["kind"] != "Plugin":
        yield "kind"
    if not re.fullmatch(r"[\w-]+", plugin) or name != f"{plugin}.yaml":
        yield "name"
    if not re.fullmatch(r"v\d+\.\d+\.\d+", spec["version"]):
        yield "version"
    if not 0 < len(spec["shortDescription"]) <= 70 or "\n" in spec["shortDescription"]:
        yield "shortDescription"
    for text in ("description", "caveats"):
        if any(len(line) > 80 for line in spec[text].splitlines()):
            yield text
    for platform in spec["platforms"]:
        yield from faults_of_platform(platform)
    chosen = [tuple(each["selector"]["matchLabels"].values()) for each in spec["platforms"]]
    if not chosen or len(chosen) != len({*chosen}) or not {*chosen} <= OF_GO:
        yield "platforms"


def faults_of_platform(platform: Json) -> Iterator[str]:
    if not platform["uri"].startswith("https://"):
        yield "uri"
    if not re.fullmatch(r"[a-f0-9]{64}", platform["sha256"]):
        yield "sha256"
    if [*platform["selector"]] != ["matchLabels"]:
        yield "selector"
    if [*platform["selector"]["matchLabels"]] != ["os", "arch"]:
        yield "matchLabels"
    if not platform["files"] or any(
        not (each["from"] and each["to"]) for each in platform["files"]
    ):
        yield "files"
    if platform["bin"] not in [each["from"] for each in platform["files"]]:
        yield "bin"


def test_krew_takes_the_manifest_of_a_release(folder: Path) -> None:
    path = write(REPOSITORY, VERSION, folder)
    found = yaml.safe_load(path.read_text())
    assert list(faults(path.name, found)) == []
    assert found["spec"]["version"] == "v1.2.3"
    chosen = [each["selector"]["matchLabels"] for each in found["spec"]["platforms"]]
    assert {tuple(each.values()) for each in chosen} == OF_GO
    assert "{" not in path.read_text()


def test_the_template_itself_is_no_manifest() -> None:
    """Or the rules above would hold for anything."""
    found = yaml.safe_load(TEMPLATE.read_text())
    assert list(faults(TEMPLATE.name, found)) == ["name", "version", "uri", "sha256", "platforms"]


def test_an_archive_has_the_files_that_the_manifest_names(folder: Path) -> None:
    found = yaml.safe_load(write(REPOSITORY, VERSION, folder).read_text())
    for platform, name in zip(found["spec"]["platforms"], files(VERSION), strict=True):
        archive = folder / platform["uri"].removeprefix(f"{REPOSITORY}/releases/download/v1.2.3/")
        assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
        with tarfile.open(archive) as opened:
            content = {each.name: opened.extractfile(each) for each in opened}
            read = {key: file.read() for key, file in content.items() if file is not None}
            assert opened.getmember(platform["bin"]).mode == 0o755
        assert [*read] == [each["from"] for each in platform["files"]]
        assert read[platform["bin"]] == (folder / name).read_bytes()
        assert read["LICENSE"] == LICENSE.read_bytes()


def test_a_platform_without_its_file_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(krew, "installed", lambda _: VERSION)
    main(REPOSITORY, folder)
    assert capsys.readouterr().out == f"{folder / MANIFEST}\n"
    (folder / "muster-1.2.3-python3.13-Darwin-arm64.pyz").unlink()
    with pytest.raises(SystemExit, match=r": muster-1\.2\.3-python3\.13-Darwin-arm64\.pyz$"):
        main(REPOSITORY, folder)


def test_a_repository_that_is_not_named_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is what make gives it outside of the build server."""
    monkeypatch.setattr(krew, "installed", lambda _: VERSION)
    with pytest.raises(SystemExit, match="needs REPOSITORY, which is '/'"):
        main("/", folder)

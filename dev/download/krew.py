"""`python -m download.krew REPOSITORY FOLDER`: writes krew's archives and its manifest.

The folder has the files that `make cli` wrote. krew chooses by platform alone, so of each platform
it gets the file for one Python.
"""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from collections.abc import Mapping
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

PYTHON = "3.13"
"""That of the image; see Dockerfile."""
PLATFORMS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("Linux", "x86_64"): ("linux", "amd64"),
    ("Linux", "aarch64"): ("linux", "arm64"),
    ("Darwin", "arm64"): ("darwin", "arm64"),
}
"""What `uname` calls a platform, and what Go and so krew call it.

Macs with Intel processors are not among them: cryptography is not compiled for them any more.
"""
PLUGIN = "kubectl-muster"
TEMPLATE = Path(__file__).with_name("krew.yaml")
LICENSE = Path(__file__).parents[2] / "LICENSE"
MANIFEST = "muster.yaml"
"""krew takes the plugin's name from it."""


def write(repository: str, version: str, folder: Path) -> Path:
    """Write the archive of each platform, and the manifest that names them."""
    release = {"repository": repository, "version": version, "python": PYTHON}
    platforms = [
        {"os": system, "arch": processor, **_archived(folder / name, system, processor)}
        for name, (system, processor) in files(version).items()
    ]
    manifest = folder / MANIFEST
    manifest.write_text(yaml.safe_dump(filled(release, platforms), sort_keys=False))
    return manifest


def files(version: str) -> dict[str, tuple[str, str]]:
    """The command's files that krew gets, and the platform of each in its words."""
    return {
        f"muster-{version}-python{PYTHON}-{system}-{machine}.pyz": platform
        for (system, machine), platform in PLATFORMS.items()
    }


def _archived(file: Path, system: str, processor: str) -> dict[str, str]:
    """Write a platform's archive; krew asks for the license in it."""
    archive = file.with_name(f"{PLUGIN}-{system}-{processor}.tar.gz")
    with tarfile.open(archive, "w:gz", compresslevel=1) as written:
        _add(written, PLUGIN, file.read_bytes(), 0o755)
        _add(written, LICENSE.name, LICENSE.read_bytes(), 0o644)
    return {"archive": archive.name, "sha256": hashlib.sha256(archive.read_bytes()).hexdigest()}


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))


def filled(release: Mapping[str, str], platforms: list[dict[str, str]]) -> Json:
    """Fill in the template."""
    template: Json = yaml.safe_load(TEMPLATE.read_text(encoding="utf-8"))
    (platform,) = template["spec"].pop("platforms")
    found: Json = _filled(template, release)
    found["spec"]["platforms"] = [_filled(platform, {**release, **each}) for each in platforms]
    return found


def _filled(template: Any, values: Mapping[str, str]) -> Any:
    """Fill in every text of a document."""
    if isinstance(template, dict):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [_filled(each, values) for each in template]
    return template.format_map(values)


def main(repository: str, folder: Path) -> None:
    """Write them, or say which files are not there."""
    version = installed("muster")
    missing = [name for name in files(version) if not (folder / name).exists()]
    if missing or not repository.startswith("https://"):
        sys.exit(
            f"krew's manifest needs REPOSITORY, which is {repository!r} and begins with https://, "
            f"and of `make cli` in {folder}: {', '.join(missing) or 'nothing more'}"
        )
    sys.stdout.write(f"{write(repository, version, folder)}\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

"""Runs commands in an image that `make image` built with buildah, as its user, nothing writable."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.packaging.image_root import SECONDS, Ran, megabytes_of, ran, sandboxed

_CHROOT = """
set -e
root=$1 user=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc none "$root/proc"
mount -o remount,bind,ro "$root"
exec chroot --userspec "$user" --groups= "$root" "$@"
"""


@dataclass(frozen=True)
class BuiltImage:
    """An image, its root file system mounted in a folder."""

    path: Path
    environment: dict[str, str]
    user: str

    @property
    def installed(self) -> Path:
        """What the last stage copies from the first, as programs of the image see it."""
        return Path("/opt/muster")

    @property
    def megabytes(self) -> float:
        """What the Dockerfile adds to its base, as files take it."""
        return megabytes_of(self.path / "opt" / "muster")

    def has(self, script: str) -> bool:
        """Say whether a command is installed."""
        return (self.path / "opt" / "muster" / "bin" / script).is_file()

    def run(self, *command: str, **settings: str) -> Ran:
        """Run a command on the files of the image and none of this machine's."""
        words = ("unshare", "--mount", "sh", "-c", _CHROOT, "sh", str(self.path), self.user)
        return ran((*words, *command), {**self.environment, **settings})


def exists(image: str) -> bool:
    """Say whether buildah is there, and has an image of this name that can be run here."""
    if shutil.which("buildah") is None or not sandboxed():
        return False
    return _buildah("inspect", "--type", "image", image).returncode == 0


@contextmanager
def mounted(image: str) -> Iterator[BuiltImage]:
    """Mount an image as a container has it, until the block ends."""
    said = _buildah("inspect", "--type", "image", image).stdout
    config = json.loads(said)["OCIv1"]["config"]
    container = _buildah("from", "--pull-never", image).stdout.strip()
    try:
        path = Path(_buildah("mount", container).stdout.strip())
        environment = dict(pair.split("=", 1) for pair in config["Env"])
        yield BuiltImage(path, environment, config["User"])
    finally:
        _buildah("umount", container)
        _buildah("rm", container)


def _buildah(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["buildah", *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )

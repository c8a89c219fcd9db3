"""The image that `make image` has built starts each program, as its user, with buildah.

MUSTER_IMAGE names it, as `make image` has named it. Where there is none, what the Dockerfile makes
is tried in a folder (`test_image_root.py`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from tests.packaging.image_root import said, stages
from tests.packaging.test_image_root import SERVERS

IMAGE = os.environ.get("MUSTER_IMAGE", "")
SECONDS = 300.0


def _missing() -> str:
    if not IMAGE:
        return "MUSTER_IMAGE names no image that `make image` has built"
    return "" if shutil.which("buildah") and os.geteuid() == 0 else "it takes buildah, and root"


pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(_missing()), reason=_missing()),
]


def buildah(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["buildah", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    made = buildah("from", "--pull-never", IMAGE)
    assert made.returncode == 0, made.stderr
    name = made.stdout.strip()
    yield name
    buildah("rm", name)


def start(container: str, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Start what ENTRYPOINT begins with, with the user and the variables of the image."""
    given = [f"--env={name}={value}" for name, value in settings.items()]
    [entrypoint] = said(stages()[-1], "ENTRYPOINT")
    run = ("run", "--isolation=chroot", *given, container, "--")
    return buildah(*run, *json.loads(entrypoint), *words)


def test_the_image_says_how_it_is_started(container: str) -> None:
    config = json.loads(buildah("inspect", "--type=image", IMAGE).stdout)["OCIv1"]["config"]
    last = stages()[-1]
    assert config["User"] == said(last, "USER")[0]
    assert config["Entrypoint"] == json.loads(said(last, "ENTRYPOINT")[0])
    assert config["Cmd"] == json.loads(said(last, "CMD")[0])
    asked = "import os; print(os.getuid(), os.getgid())"
    run = ("run", "--isolation=chroot", container, "--", "python", "-c", asked)
    assert buildah(*run).stdout.split() == ["65532", "65532"]


@pytest.mark.parametrize("program", SERVERS)
def test_a_program_without_a_cluster_says_what_is_missing(container: str, program: str) -> None:
    """Everything of it is imported by then."""
    name = f"MUSTER_{program.upper()}_KUBECONFIG"
    done = start(container, program, **{name: "/no/such/file"})
    assert done.returncode == 1, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("{")]
    assert json.loads(lines[-1])["event"] == "cannot run"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [["certs"], ["certs", "issue"], ["cli"]])
def test_a_command_explains_itself(container: str, command: list[str]) -> None:
    done = start(container, *command, "--help")
    assert done.returncode == 0, done.stderr
    assert "Options:" in done.stdout

"""What the Dockerfile installs runs as it has to: not as root, and with nothing to write to."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging import built_image
from tests.packaging.built_image import BuiltImage
from tests.packaging.image_root import ImageRoot, made, said, sandboxed, stages
from tests.packaging.test_requirements import entries, pin
from tests.packaging.tree import ROOT, project

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

SERVERS = ["webhook", "coordinator", "extender", "wrapper", "dispatcher", "forecaster"]
BUILT = os.environ.get("MUSTER_TEST_IMAGE", "muster:dev")
"""The image that `make image` builds; MUSTER_TEST_IMAGE names another one."""
Root = ImageRoot | BuiltImage
MOST_MEGABYTES = 300.0
"""What a node has to load beside the base: 264 MB, 80 of it bytecode, and some room."""


@pytest.fixture(scope="module", params=["folder", "image"])
def root(request: pytest.FixtureRequest) -> Iterator[Root]:
    """What the Dockerfile installs, in a folder; and in the image that `make image` built."""
    if request.param == "folder":
        yield from _in_a_folder()
        return
    if not built_image.exists(BUILT):
        pytest.skip(f"buildah has no image {BUILT}: make image BASE_IMAGE=... builds it")
    with built_image.mounted(BUILT) as found:
        yield found


def _in_a_folder() -> Iterator[ImageRoot]:
    """The folder is not pytest's own, which only the tests' user can enter."""
    path = Path(tempfile.mkdtemp(prefix="muster-image-"))
    try:
        yield made(path)
    finally:
        for each in path.rglob("*"):
            if each.is_dir() and not each.is_symlink():
                each.chmod(0o755)
        shutil.rmtree(path)


def started(root: Root, *words: str, **settings: str) -> tuple[int, str, str]:
    """Run what ENTRYPOINT begins with, and these words."""
    [entrypoint] = said(stages()[-1], "ENTRYPOINT")
    ran = root.run(*json.loads(entrypoint), *words, **settings)
    return ran.code, ran.out, ran.err


def test_the_programs_run_as_no_root_and_cannot_write(root: Root) -> None:
    if not sandboxed():
        pytest.skip("only root can become another user; the folders alone are without write rights")
    tries = "import os; print(os.getuid(), os.getgid(), os.getgroups())"
    assert root.run("python", "-c", tries).out.split(None, 2) == ["65532", "65532", "[]\n"]
    for folder in ("/tmp", "/var/tmp", str(root.installed), "/"):
        ran = root.run("python", "-c", f"open({folder!r} + '/muster-written', 'w')")
        assert "Read-only file system" in ran.err, folder


def test_what_is_installed_is_what_is_pinned_and_nothing_else(root: Root) -> None:
    listing = (
        "from importlib.metadata import distributions as all;"
        "print(*(each.name + '==' + each.version for each in all()), sep='\\n')"
    )
    found = sorted(root.run("python", "-I", "-c", listing).out.lower().replace("_", "-").split())
    wanted = entries(ROOT / "requirements" / "runtime.txt")
    pinned = [f"{name}=={pin(requirement)}" for name, (requirement, _) in wanted.items()]
    assert found == sorted([*pinned, f"muster=={project()['project']['version']}"])


@pytest.mark.parametrize("program", SERVERS)
def test_a_program_names_the_setting_that_is_wrong(program: str, root: Root) -> None:
    name = f"MUSTER_{program.upper()}_LOG_LEVEL"
    code, _, said = started(root, program, **{name: "loud"})
    assert code == 2, said
    assert f"{name}: 'loud'" in said


@pytest.mark.parametrize("program", SERVERS)
def test_a_program_without_a_cluster_says_what_is_missing(program: str, root: Root) -> None:
    """Everything of it is imported by then; nothing needs a folder to write to."""
    name = f"MUSTER_{program.upper()}_KUBECONFIG"
    code, _, said = started(root, program, **{name: "/no/such/file"})
    assert code == 1, said
    last = json.loads(said.splitlines()[-1])
    assert last["event"] == "cannot run"
    assert "/no/such/file" in last["reason"]
    assert "Traceback" not in said


@pytest.mark.parametrize("command", [["certs"], ["certs", "issue"], ["cli"], ["cli", "dashboard"]])
def test_a_command_explains_itself(command: list[str], root: Root) -> None:
    code, told, said = started(root, *command, "--help")
    assert code == 0, said
    assert "Options:" in told


@pytest.mark.parametrize("script", sorted(project()["project"]["scripts"]))
def test_every_command_is_on_the_path(script: str, root: Root) -> None:
    assert root.has(script)


def test_the_image_stays_small(root: Root) -> None:
    assert root.megabytes < MOST_MEGABYTES

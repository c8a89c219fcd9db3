"""Builds the testbed's programs from pinned Go modules into the cache, once.

A result is a folder named by its content key: programs under `bin/`, the module's own files (CRDs,
samples, stages) under `assets/`. It is filled under another name and renamed when whole, so a
folder with the right name can be used without looking inside.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import toolchain
from testbed.errors import TestbedError
from testbed.recipes import BUILD_FLAGS, Recipe, Target, content_key, this_machine

HEARTBEAT_SECONDS = 15.0
_LOG_LINES_SHOWN = 30

Say = Callable[[str], None]


@dataclass(frozen=True)
class Artifacts:
    """Where everything that was built lies."""

    folders: dict[str, Path]

    def program(self, name: str) -> Path:
        """Return the path of a program by its usual name."""
        paths = (folder / "bin" / name for folder in self.folders.values())
        found = next((path for path in paths if path.exists()), None)
        if found is None:
            raise TestbedError(f"the testbed builds no program {name!r}")
        return found

    @property
    def crds(self) -> Path:
        """KubeRay's CustomResourceDefinitions."""
        return self._asset("config/crd/bases")

    @property
    def samples(self) -> Path:
        """KubeRay's own examples of RayCluster, RayJob and RayService."""
        return self._asset("config/samples")

    @property
    def kuberay_role(self) -> Path:
        """The ClusterRole that KubeRay ships for its operator."""
        return self._asset("config/rbac/role.yaml")

    @property
    def stages(self) -> Path:
        """The life cycles of nodes and pods that kwok ships."""
        return self._asset("kustomize/stage")

    def _asset(self, name: str) -> Path:
        paths = (folder / "assets" / name for folder in self.folders.values())
        return next(path for path in paths if path.exists())


def cache_directory() -> Path:
    """Return the folder that outlives work trees and virtual environments."""
    named = os.environ.get("MUSTER_TESTBED_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "muster" / "testbed"


def build(recipes: Sequence[Recipe], say: Say) -> Artifacts:
    """Build whatever the cache lacks of these and return where everything lies."""
    cache, target = cache_directory(), this_machine()
    cache.mkdir(parents=True, exist_ok=True)
    folders = {recipe.name: cache / content_key(recipe, target) for recipe in recipes}
    missing = [recipe for recipe in recipes if not folders[recipe.name].exists()]
    if missing:
        go = toolchain.find_go(toolchain.needed_version(_go_mods(missing)), say)
        for number, recipe in enumerate(missing, start=1):
            title = f"[{number}/{len(missing)}] {recipe.name}"
            _build_once(_Build(recipe, target, go, folders[recipe.name], title), say)
    return Artifacts(folders)


def _go_mods(recipes: Sequence[Recipe]) -> list[Path]:
    return [recipe.directory / "go.mod" for recipe in recipes]


@dataclass(frozen=True)
class _Build:
    recipe: Recipe
    target: Target
    go: Path
    result: Path
    title: str

    @property
    def partial(self) -> Path:
        return self.result.with_name(f".{self.result.name}.partial")

    @property
    def environment(self) -> dict[str, str]:
        """No C compiler, no other toolchain, no change of the pinned files."""
        fixed = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
        place = {"GOOS": self.target.goos, "GOARCH": self.target.goarch, "GOWORK": "off"}
        return {**os.environ, **fixed, **place}


def _build_once(build: _Build, say: Say) -> None:
    """Build under a lock; a second builder waits and then finds the work done."""
    with locked(build.result.with_name(f".{build.result.name}.lock"), build.title, say):
        if build.result.exists():
            return
        started = time.monotonic()
        shutil.rmtree(build.partial, ignore_errors=True)
        _compile(build, say)
        _copy_assets(build)
        build.partial.rename(build.result)
        say(f"{build.title}: built in {time.monotonic() - started:.0f} s")


@contextlib.contextmanager
def locked(path: Path, title: str, say: Say) -> Iterator[None]:
    """Hold a file lock, which the system takes back when its holder dies."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{title}: another process is building this; waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _compile(build: _Build, say: Say) -> None:
    programs = build.partial / "bin"
    programs.mkdir(parents=True)
    # -v names each package as it is compiled: the only sign of life that the compiler gives.
    command = [str(build.go), "build", "-v", *BUILD_FLAGS, "-ldflags", build.recipe.ldflags]
    command += ["-tags", ",".join(build.recipe.tags)] if build.recipe.tags else []
    command += ["-o", f"{programs}{os.sep}", *build.recipe.packages]
    log = build.partial / "build.log"
    say(f"{build.title}: building {', '.join(build.recipe.packages)}")
    if _run_with_heartbeat(command, build, log, say) != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:])
        raise TestbedError(f"{build.title}: go build failed\n{tail}")
    for built, installed in build.recipe.renames.items():
        (programs / built).rename(programs / installed)


def _run_with_heartbeat(command: list[str], build: _Build, log: Path, say: Say) -> int:
    started = time.monotonic()
    with (
        log.open("w") as output,
        subprocess.Popen(
            command,
            cwd=build.recipe.directory,
            env=build.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        while True:
            try:
                return process.wait(HEARTBEAT_SECONDS)
            except subprocess.TimeoutExpired:
                say(f"{build.title}: {_progress(log)}, {time.monotonic() - started:.0f} s")
            except BaseException:
                process.kill()
                raise


def _progress(log: Path) -> str:
    """Tell downloading from compiling by what the compiler has said so far."""
    lines = log.read_text(errors="replace").splitlines()
    downloads = sum(line.startswith("go: downloading") for line in lines)
    compiled = len(lines) - downloads
    return f"{compiled} packages compiled" if compiled else f"{downloads} modules fetched"


def _copy_assets(build: _Build) -> None:
    """Keep the module's own files, so that a warm run needs no Go and no module cache."""
    if not build.recipe.assets:
        return
    command = [str(build.go), "list", "-m", "-f", "{{.Dir}}", build.recipe.module]
    source = subprocess.run(
        command,
        cwd=build.recipe.directory,
        env=build.environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for asset in build.recipe.assets:
        # copyfile, not copy2: module folders are read-only, and a cache must stay removable.
        target = build.partial / "assets" / asset
        shutil.copytree(Path(source) / asset, target, copy_function=shutil.copyfile)
        for folder in [target, *(path for path in target.rglob("*") if path.is_dir())]:
            folder.chmod(0o755)

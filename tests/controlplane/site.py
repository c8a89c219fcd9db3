"""Lays out what a person has who reads the documents: kubectl, muster, a kubeconfig and a shell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed.cluster import Cluster
from tests.packaging.tree import ROOT

GIVEN_UP = 120.0
"""Seconds that no command takes."""


@dataclass
class Site:
    """The cluster, and a folder with what the commands find: kubectl, muster, a kubeconfig."""

    cluster: Cluster
    folder: Path

    def run(
        self, text: str, at: Path, *, interrupted: bool = False, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a folder as bash does; it is interrupted once it has said something
        where it never ends by itself."""
        process = subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", text],
            cwd=at,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        first = ""
        try:
            if interrupted:
                first = process.stdout.readline()
                os.killpg(process.pid, signal.SIGINT)
            out, err = process.communicate(timeout=GIVEN_UP)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(text, process.returncode, first + out, err)

    @property
    def environment(self) -> dict[str, str]:
        """Of a person who has nothing but these programs and that kubeconfig."""
        return {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.folder / "config"),
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "200",
            "EDITOR": "true",  # it leaves the file as it is
        }


READS = "get describe diff wait auth explain kustomize muster"
WRITES = "apply create delete patch label annotate scale replace"
KUBECTL = """#!/bin/bash
# Writes of the documents are dry runs, but for the installation itself.
for word in "$@"; do
  [[ " {reads} " == *" $word "* ]] && break
  [[ " {writes} " == *" $word "* ]] && dry=--dry-run=server && break
done
[[ $FOR_REAL || "$*" == *--dry-run* ]] && dry=
exec {kubectl} "$@" $dry
"""
MUSTER = """#!/bin/sh
exec {python} -c "from cli.__main__ import main; main(prog_name='muster')" "$@"
"""


def executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def equipped(cluster: Cluster, folder: Path, namespace: str = "default") -> Site:
    """Lay out the programs, and a kubeconfig with the contexts that the pages name."""
    (folder / "bin").mkdir(parents=True)
    kubectl = cluster.site.programs.program("kubectl")
    executable(
        folder / "bin" / "kubectl", KUBECTL.format(reads=READS, writes=WRITES, kubectl=kubectl)
    )
    for name in ("muster", "kubectl-muster"):
        executable(folder / "bin" / name, MUSTER.format(python=sys.executable))
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    (context,) = config["contexts"]
    context["context"]["namespace"] = namespace
    config["contexts"].append({**context, "name": "prod"})
    (folder / "config").write_text(yaml.safe_dump(config))
    return Site(cluster, folder)

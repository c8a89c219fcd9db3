"""The programs that make up the testbed, and what exactly is built for each.

One small Go module for each project under `modules/`: no single module graph can hold them all,
since they ask for different versions of the same Kubernetes libraries. The modules' go.sum files
pin the content of everything that is built.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.errors import TestbedError

MODULES = Path(__file__).parent / "modules"
BUILD_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly")
DEFAULT_KUBERNETES = "1.37.2"
KUBERNETES_VARIABLE = "MUSTER_TESTBED_KUBERNETES"
DEFAULT_KUBERAY = "1.6.2"
KUBERAY_VARIABLE = "MUSTER_TESTBED_KUBERAY"

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True)
class Recipe:
    """One module under `modules/` and what is taken from it."""

    name: str
    module: str
    packages: tuple[str, ...]
    ldflags: str = "-s -w"
    # Go names a program after its package's folder, which is not always what people call it.
    renames: Mapping[str, str] = field(default_factory=dict)
    # Folders of the module's source that a warm run needs beside the programs.
    assets: tuple[str, ...] = ()
    # Build tags of Go, by which some modules leave parts of themselves out.
    tags: tuple[str, ...] = ()

    @property
    def directory(self) -> Path:
        """Where this recipe's go.mod and go.sum lie."""
        return MODULES / self.name


def _kubernetes(name: str, version: str) -> Recipe:
    """Take the same four programs from one version of Kubernetes."""
    programs = ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "kubectl")
    return Recipe(
        name=name,
        module="k8s.io/kubernetes",
        packages=tuple(f"k8s.io/kubernetes/cmd/{program}" for program in programs),
        ldflags=_kubernetes_ldflags(version),
    )


def _kubernetes_ldflags(version: str) -> str:
    """Stamp the version, which is otherwise v0.0.0-master in every answer of the API server."""
    major, minor, _ = version.split(".")
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    flags = [f"-X {package}.{key}={value}" for package in packages for key, value in stamps.items()]
    return " ".join(["-s -w", *flags])


KUBERNETES: Mapping[str, Recipe] = {
    "1.37.2": _kubernetes("kubernetes-1.37", "1.37.2"),
    "1.36.3": _kubernetes("kubernetes", "1.36.3"),
    "1.35.4": _kubernetes("kubernetes-1.35", "1.35.4"),
    "1.34.4": _kubernetes("kubernetes-1.34", "1.34.4"),
    "1.33.13": _kubernetes("kubernetes-1.33", "1.33.13"),
}


def _etcd(name: str) -> Recipe:
    """Take the server alone from one version of etcd."""
    return Recipe(
        name=name,
        module="go.etcd.io/etcd/server/v3",
        packages=("go.etcd.io/etcd/server/v3",),
        renames={"server": "etcd"},
    )


_ETCD_3_6 = _etcd("etcd")
ETCD: Mapping[str, Recipe] = {
    version: _etcd("etcd-3.7") if version == "1.37.2" else _ETCD_3_6 for version in KUBERNETES
}
"""By the version of Kubernetes: kubeadm of 1.37 sets up 3.7, those before it 3.6 or older."""

KWOK = Recipe(
    name="kwok",
    module="sigs.k8s.io/kwok",
    packages=("sigs.k8s.io/kwok/cmd/kwok",),
    assets=("kustomize/stage",),
)


def _kuberay(name: str) -> Recipe:
    """Take the operator and what belongs to it from one version of KubeRay."""
    return Recipe(
        name=name,
        module="github.com/ray-project/kuberay/ray-operator",
        packages=("github.com/ray-project/kuberay/ray-operator",),
        assets=("config/crd/bases", "config/rbac", "config/samples"),
    )


KUBERAY: Mapping[str, Recipe] = {
    "1.6.2": _kuberay("kuberay"),
    "1.5.1": _kuberay("kuberay-1.5"),
    "1.4.2": _kuberay("kuberay-1.4"),
}

PROMETHEUS = Recipe(
    name="prometheus",
    module="github.com/prometheus/prometheus",
    packages=tuple(
        f"github.com/prometheus/prometheus/cmd/{program}" for program in ("prometheus", "promtool")
    ),
    # Without the discovery of targets in clouds, which is half of the build.
    tags=("remove_all_sd",),
)
"""No part of a cluster: what reads its metrics, and checks rules, in the long tests."""

CERT_MANAGER = Recipe(
    name="cert-manager",
    module="github.com/cert-manager/cert-manager",
    packages=("github.com/cert-manager/cert-manager/testbed",),
    renames={"testbed": "cert-manager"},
    assets=("deploy/crds",),
)
"""What the overlay of that name needs of it, in one program of ours, in the long tests."""


def _helm_ldflags(version: str, kubernetes: str) -> str:
    """Stamp the version, and the Kubernetes that charts are rendered for, which is else 1.20."""
    major, minor, _ = kubernetes.split(".")
    flags = [f"-X helm.sh/helm/v3/internal/version.version=v{version}"]
    for package in ("pkg/chartutil", "pkg/lint/rules"):
        stamps = {"k8sVersionMajor": major, "k8sVersionMinor": minor}
        flags += [f"-X helm.sh/helm/v3/{package}.{key}={value}" for key, value in stamps.items()]
    return " ".join(["-s -w", *flags])


HELM = Recipe(
    name="helm",
    module="helm.sh/helm/v3",
    packages=("helm.sh/helm/v3/cmd/helm",),
    ldflags=_helm_ldflags("3.20.2", DEFAULT_KUBERNETES),
)
"""What renders the chart, in the long tests."""


def recipes_for(kubernetes: str, kuberay: str) -> tuple[Recipe, ...]:
    """List what a cluster of these versions of Kubernetes and KubeRay is made of.

    The quick ones first, so that a cold build soon shows something finished.
    """
    control_plane = _known("Kubernetes", KUBERNETES, kubernetes)
    return (ETCD[kubernetes], KWOK, _known("KubeRay", KUBERAY, kuberay), control_plane)


def _known(what: str, recipes: Mapping[str, Recipe], version: str) -> Recipe:
    if version not in recipes:
        known = ", ".join(recipes)
        raise TestbedError(f"the testbed knows no {what} {version!r}, only: {known}")
    return recipes[version]


def chosen_kubernetes() -> str:
    """Return the version of clusters for which nothing else is said."""
    return os.environ.get(KUBERNETES_VARIABLE, DEFAULT_KUBERNETES)


def chosen_kuberay() -> str:
    """Return the version of KubeRay in clusters for which nothing else is said."""
    return os.environ.get(KUBERAY_VARIABLE, DEFAULT_KUBERAY)


@dataclass(frozen=True)
class Target:
    """The operating system and processor that is built for, in Go's words."""

    goos: str
    goarch: str


def this_machine() -> Target:
    """Work out Go's names for this machine without needing Go."""
    machine = platform.machine().lower()
    if machine not in _ARCHITECTURES:
        raise TestbedError(f"the testbed does not know the processor {machine!r}")
    return Target(platform.system().lower(), _ARCHITECTURES[machine])


def content_key(recipe: Recipe, target: Target) -> str:
    """Name the result of a build by everything that goes into it, so that no stale one is used."""
    sources = {path.name: path.read_text() for path in sorted(recipe.directory.glob("*.go"))}
    ingredients = {
        **({"sources": sources} if sources else {}),
        "go.mod": (recipe.directory / "go.mod").read_text(),
        "go.sum": (recipe.directory / "go.sum").read_text(),
        "packages": recipe.packages,
        "flags": [*BUILD_FLAGS, recipe.ldflags, *recipe.tags],
        "renames": dict(recipe.renames),
        "assets": recipe.assets,
        "target": [target.goos, target.goarch],
    }
    text = json.dumps(ingredients, sort_keys=True)
    return f"{recipe.name}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"

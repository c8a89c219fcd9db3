"""Builds Muster's manifests as an operator does, with the cluster's own kubectl."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from testbed.api import Json
from testbed.cluster import Cluster

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"
DEFAULT = MANIFESTS / "overlays" / "self-signed"
_RUN_BY_OTHERS = frozenset(
    ("CustomResourceDefinition", "Deployment", "PodDisruptionBudget", "Service", "StatefulSet")
)


def built(cluster: Cluster, directory: Path) -> list[Json]:
    """The objects that `kubectl apply -k` would apply."""
    text = cluster.kubectl("kustomize", str(directory))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the definitions are long
    return list(yaml.load_all(text, loader))


def combination(directory: Path, components: Iterable[str], **more: Any) -> Path:
    """Write an overlay of the base and some components, as docs/install.md has it."""
    directory.mkdir(parents=True, exist_ok=True)
    up = os.path.relpath(MANIFESTS, directory.resolve())  # kustomize takes no absolute path
    named = [f"{up}/{component}" for component in components]
    text = {"resources": [f"{up}/base"], "components": named, **more}
    (directory / "kustomization.yaml").write_text(json.dumps(text))  # JSON is YAML
    return directory


def apply(cluster: Cluster, objects: Iterable[Mapping[str, Any]], *arguments: str) -> None:
    """Apply objects, in one call of kubectl; any warning is an error."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    fixed = ("apply", "--warnings-as-errors", "-f", "-")
    cluster.kubectl(*fixed, *arguments, input=json.dumps(listed))


def around_programs(objects: Iterable[Json]) -> list[Json]:
    """Leave out what runs the programs as pods: the testbed runs them itself."""
    return [each for each in objects if each["kind"] not in _RUN_BY_OTHERS]

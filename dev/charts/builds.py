"""What kustomize builds for each world, each built once."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from charts.openings import IMAGE
from charts.worlds import World, components
from charts.writing import documents

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "manifests"

Json = dict[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace and name of an object."""


class Builds:
    """Asks kubectl for the objects of a world, and keeps them."""

    def __init__(self, kubectl: Path) -> None:
        self._kubectl = kubectl
        self._known: dict[World, dict[Key, Json]] = {}

    def of(self, world: World) -> Mapping[Key, Json]:
        """The objects of a world."""
        if world not in self._known:
            text = kustomized(self._kubectl, components(world))
            self._known[world] = {key(each): each for each in documents(text)}
        return self._known[world]


def key(found: Json) -> Key:
    """What tells an object from the others."""
    metadata = found["metadata"]
    return found["kind"], metadata.get("namespace", ""), metadata["name"]


def kustomized(kubectl: Path, named: list[str]) -> str:
    """What kubectl builds of an overlay of the base and components."""
    name, _, tag = IMAGE.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        up = os.path.relpath(MANIFESTS, Path(folder).resolve())  # it takes no absolute path
        overlay = {
            "resources": [f"{up}/base"],
            "components": [f"{up}/{each}" for each in named],
            "images": [{"name": name, "newTag": tag}],
        }
        (Path(folder) / "kustomization.yaml").write_text(json.dumps(overlay))  # JSON is YAML
        command = [str(kubectl), "kustomize", folder]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

"""The objects of the manifests' base, for the tests beside it."""

from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "manifests"
BASE = MANIFESTS / "base"
PROGRAMS = ("webhook", "coordinator", "certs")


def documents(path: Path) -> list[Json]:
    """Read a file of objects; with libyaml, for the definitions are long."""
    text = path.read_text(encoding="utf-8")
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


OBJECTS = [
    each
    for path in sorted(BASE.glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for each in documents(path)
]


def one(kind: str, name: str) -> Json:
    (found,) = [o for o in OBJECTS if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    return found

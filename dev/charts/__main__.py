"""Writes charts/muster: `make chart`."""

from __future__ import annotations

from charts.files import TEMPLATES, written
from testbed.build import build
from testbed.recipes import DEFAULT_KUBERAY, DEFAULT_KUBERNETES, recipes_for


def _silent(_line: str) -> None:
    """Say nothing of programs that are built: `make build` has done so."""


def main() -> None:
    """Build what kustomize builds, and write the chart and its table from it."""
    recipes = recipes_for(DEFAULT_KUBERNETES, DEFAULT_KUBERAY)
    kubectl = build(recipes, _silent).program("kubectl")
    found = written(kubectl)
    for path in {*TEMPLATES.glob("*.yaml")} - {*found}:
        path.unlink()
    for path, text in found.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

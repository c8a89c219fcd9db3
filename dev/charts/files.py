"""The files of the chart that are written: templates, values, their schema and their table."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from charts import values
from charts.builds import MANIFESTS, ROOT, Builds, Key
from charts.merging import merged
from charts.openings import default_resources, opened, unset
from charts.worlds import CONDITIONS, EXCLUSIONS, concerned, worlds_of
from charts.writing import Writer

CHART = ROOT / "charts" / "muster"
TEMPLATES = CHART / "templates"
DIGEST = ROOT / "charts" / "manifests.sha256"
INSTALL = ROOT / "docs" / "install.md"
TABLE = re.compile(r"(?<=<!-- values of the chart -->\n).*?(?=<!-- end -->)", re.DOTALL)

_HEAD = "{{- /* Written by `make chart` from manifests/: change it there. */ -}}\n"


def written(kubectl: Path) -> dict[Path, str]:
    """Each file with its text."""
    builds = Builds(kubectl)
    found = {**_templates(builds), TEMPLATES / "checks.yaml": _checks()}
    every = values.values(_resources(builds))
    return {
        **found,
        CHART / "values.yaml": values.values_file(every),
        CHART / "values.schema.json": values.schema(every),
        INSTALL: TABLE.sub(lambda _: values.table(every), INSTALL.read_text(encoding="utf-8")),
        DIGEST: digest() + "\n",
    }


def digest() -> str:
    """The sum of what the chart is written from, which tells cheaply whether it is stale."""
    total = hashlib.sha256()
    sources = [*MANIFESTS.rglob("*"), *Path(__file__).parent.glob("*.py")]
    for path in sorted(each for each in sources if each.is_file() and not _unrelated(each)):
        total.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def _unrelated(path: Path) -> bool:
    return path.is_relative_to(MANIFESTS / "overlays") or path.name.startswith(".")


def _templates(builds: Builds) -> dict[Path, str]:
    """The objects by the name of what they belong to."""
    texts: dict[Path, str] = {}
    for each in _keys(builds):
        path = TEMPLATES / f"{each[2]}.yaml"
        texts[path] = texts.get(path, _HEAD) + _object(builds, each)
    return {path: _of_definitions(path, text) for path, text in texts.items()}


def _keys(builds: Builds) -> list[Key]:
    """Every object of any world, but for the namespace, which Helm makes."""
    every = {each for world in worlds_of(CONDITIONS, most=2) for each in builds.of(world)}
    return sorted(each for each in every if each[0] != "Namespace")


def _object(builds: Builds, key: Key) -> str:
    switches = concerned(lambda one, other: builds.of(one).get(key) != builds.of(other).get(key))
    universe = frozenset(worlds_of(switches))
    variants = {
        world: opened(builds.of(world)[key])
        for world in sorted(universe, key=lambda each: (len(each), sorted(each)))
        if key in builds.of(world)
    }
    return Writer(CONDITIONS, unset).document(merged(variants), universe)


def _of_definitions(path: Path, text: str) -> str:
    if not path.name.endswith(".muster.dev.yaml"):
        return text
    return f"{_HEAD}{{{{- if .Values.crds.install }}}}\n{text.removeprefix(_HEAD)}{{{{- end }}}}\n"


def _checks() -> str:
    """What fails at once where two values exclude each other."""
    lines = [_HEAD.rstrip("\n")]
    for each in EXCLUSIONS:
        both = " ".join(CONDITIONS[name] for name in sorted(each.pair))
        lines.append(f'{{{{- if and {both} }}}}{{{{ fail "{each.message}" }}}}{{{{ end }}}}')
    return "\n".join(lines) + "\n"


def _resources(builds: Builds) -> dict[str, Any]:
    """What each container asks for, which is the same wherever it is."""
    found: dict[str, Any] = {}
    for world in worlds_of(CONDITIONS, most=1):
        for name, asked in default_resources(list(builds.of(world).values())):
            if found.setdefault(name, asked) != asked:
                raise ValueError(f"container {name} asks for {asked} and for {found[name]}")
    return found

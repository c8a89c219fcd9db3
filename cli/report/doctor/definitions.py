"""The check of `muster doctor` for the CustomResourceDefinitions of this release."""

from collections.abc import Iterator
from typing import Any

from cli.report.doctor.examined import Examined
from cli.report.doctor.findings import Finding, fail, ok, unread, warn
from cli.report.doctor.installation import named
from cli.report.snapshot import Unread
from kube.objects.crds.definition import Definition, lacks, served_schema, some
from kube.objects.crds.muster import written

Json = dict[str, Any]


def check_definitions(seen: Examined) -> Iterator[Finding]:
    """Say whether the definitions are those of this release."""
    for wanted, parts in written():
        name = wanted["metadata"]["name"]
        found = named(seen.definitions, name)
        if isinstance(found, Unread):
            yield unread(name, found)
        elif found is None:
            yield fail(name, "there is no such definition (CRD)", "kubectl apply -k manifests/crds")
        else:
            yield _definition(name, found, wanted, parts)


def _definition(name: str, found: Definition, wanted: Json, parts: tuple[str, ...]) -> Finding:
    remedy = "kubectl apply -k manifests/crds, of the release that runs"
    established = {each.type: each.status for each in found.status.conditions}.get("Established")
    if established != "True":
        return fail(name, "the API server does not serve it: not Established", remedy)
    version = wanted["spec"]["versions"][0]
    schema = served_schema(found, version["name"])
    if schema is None:
        return fail(name, f"version {version['name']} is not served", remedy)
    missing = lacks(found, wanted, *parts)
    if missing:
        said = f"it lacks what a coordinator writes: {some(missing)}; none of this release leads"
        return fail(name, said, remedy)
    place = _difference(schema, version["schema"]["openAPIV3Schema"])
    if place is not None:
        said = f"its schema is of another release than this command: they differ at {place}"
        return warn(name, said, remedy)
    return ok(name, f"{version['name']}, with the schema of this release")


def _difference(found: Any, wanted: Any, place: str = "") -> str | None:
    """Return the first place in which two schemas differ."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in sorted({*found, *wanted}):
            differs = _difference(found.get(key), wanted.get(key), f"{place}.{key}")
            if differs is not None:
                return differs
        return None
    return None if found == wanted else place or "."

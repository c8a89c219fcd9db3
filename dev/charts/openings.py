"""Opens places in the objects for what values say: image, replicas, resources, settings.

What the manifests say there becomes the default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from charts.merging import Map, Plain, Verbatim

Json = dict[str, Any]

IMAGE = "muster:dev"
VALKEY = "valkey/valkey:8.1.4-alpine"
SCALED = ("webhook", "coordinator", "extender", "wrapper", "redis", "dispatcher")
"""The programs of which there may be as many as one likes."""
SET = (*SCALED, "forecaster")
"""The programs that have settings."""
FIXED = frozenset(
    (
        "KUBECONFIG", "IDENTITY", "NAMESPACE", "WAKE_NAMESPACE", "LISTEN_ADDRESS", "LISTEN_PORT",
        "HEALTH_ADDRESS", "HEALTH_PORT", "CERTIFICATE_FILE", "KEY_FILE", "CLIENT_CA_FILE",
        "ADDRESS", "REDIS_ADDRESS", "KEY_DIRECTORY", "SERVERS", "SENTINELS",
    )
)  # fmt: skip
"""Settings that go with the rest of the objects, and are none of the values."""

CLOSING = ("ValidatingAdmissionPolicy", "muster-wrapper")
"""What closes namespaces to the wrapper, those of the values among them."""

_SETTING = re.compile(r"MUSTER_([A-Z]+)_(\w+)")
_IMAGES = {IMAGE: '{{ include "muster.image" . }}', VALKEY: "{{ .Values.redis.image | quote }}"}
_SCHEDULER = "{{ .Values.scheduler.image | quote }}"


def opened(found: Json) -> Json:
    """The object with templates where values count."""
    if found["kind"] == "CustomResourceDefinition":
        return _kept(found)
    if (found["kind"], found["metadata"]["name"]) == CLOSING:
        return _closing(found)
    if found["kind"] not in ("Deployment", "StatefulSet"):
        return found
    spec = dict(found["spec"])
    if "volumeClaimTemplates" in spec:
        spec["volumeClaimTemplates"] = [_sized(each) for each in spec["volumeClaimTemplates"]]
    name = found["metadata"]["name"].removeprefix("muster-")
    if name in SCALED:
        given = (
            f'{{{{ include "muster.given" (list .Values.{name}.replicas {spec["replicas"]}) }}}}'
        )
        spec["replicas"] = Verbatim(given)
    template = {**spec["template"], "spec": _pod(spec["template"]["spec"])}
    return {**found, "spec": {**spec, "template": template}}


def _sized(found: Json) -> Json:
    """A claim of the size that the values say."""
    asked = {"requests": {"storage": Verbatim("{{ .Values.redis.storage | quote }}")}}
    return {**found, "spec": {**found["spec"], "resources": asked}}


def _kept(found: Json) -> Json:
    """A definition, with which all objects of its kind would go."""
    metadata, keep = dict(found["metadata"]), "helm.sh/resource-policy: keep"
    if "annotations" in metadata:
        noted = {**metadata["annotations"], _within("crds.keep", keep): None}
        metadata["annotations"] = noted
    else:
        metadata[_within("crds.keep", f"annotations:\n  {keep}")] = None
    return {**found, "metadata": metadata}


def _closing(found: Json) -> Json:
    """A policy with one list of namespaces, which the values make longer."""
    matched = found["spec"]["matchConstraints"]
    (selected,) = matched["namespaceSelector"]["matchExpressions"]
    more = _within("appWrappers.closedNamespaces", "{{- toYaml . | nindent @ }}")
    longer = {**selected, "values": [*selected["values"], more]}
    constraints = {**matched, "namespaceSelector": {"matchExpressions": [longer]}}
    return {**found, "spec": {**found["spec"], "matchConstraints": constraints}}


def _pod(spec: Json) -> Json:
    """Where pods may run, their priority, and each container."""
    opened = {key: value for key, value in spec.items() if key != "priorityClassName"}
    if "priorityClassName" in spec:
        line = "priorityClassName: {{ . | quote }}"
        opened[_within("priorityClassName", line)] = None
    opened[Verbatim('{{- include "muster.pod" . | nindent @ }}')] = None
    opened["containers"] = [_container(each) for each in spec["containers"]]
    return opened


def _container(found: Json) -> Json:
    name = found["name"]
    opened = {key: value for key, value in found.items() if key not in ("image", "resources")}
    opened["image"] = Verbatim(_IMAGES.get(found["image"], _SCHEDULER))
    opened[_within("image.pullPolicy", "imagePullPolicy: {{ . }}")] = None
    resources = "resources:\n{{- toYaml . | nindent @@ }}"
    opened[_within(f"{name}.resources", resources)] = None
    if name in SET:
        settings = f'(dict "prefix" "MUSTER_{name.upper()}_" "settings" .Values.{name}.settings)'
        more = f'{{{{- include "muster.env" {settings} | nindent @ }}}}'
        opened["env"] = [*found.get("env", ()), Verbatim(more)]
    return opened


def _within(value: str, lines: str) -> Verbatim:
    """Lines that are there where the value is."""
    return Verbatim(f"{{{{- with .Values.{value} }}}}\n{lines}\n{{{{- end }}}}")


def unset(node: Map) -> str:
    """The condition of a variable that a setting of the values replaces."""
    entries = {key: alternatives[0].node for key, alternatives in node.entries}
    name = entries.get("name")
    match = _SETTING.fullmatch(str(name.value)) if isinstance(name, Plain) else None
    if match is None or "value" not in entries or match[2] in FIXED:
        return ""
    return f'not (hasKey .Values.{match[1].lower()}.settings "{match[2]}")'


def default_resources(objects: list[Json]) -> Iterator[tuple[str, Json]]:
    """What each program asks for in the manifests, by the name of its container."""
    for each in objects:
        if each["kind"] in ("Deployment", "StatefulSet"):
            for container in each["spec"]["template"]["spec"]["containers"]:
                yield container["name"], container["resources"]

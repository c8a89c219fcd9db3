"""The values of the chart: their defaults, what is allowed, and what each is for.

From this come values.yaml, values.schema.json and the table of docs/install.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from charts.openings import FIXED, SCALED, VALKEY
from coordinator.settings import Settings as CoordinatorSettings
from dispatcher.settings import Settings as DispatcherSettings
from extender.settings import Settings as ExtenderSettings
from forecaster.settings import Settings as ForecasterSettings
from headstate.settings import Settings as RedisSettings
from runtime.program import ProgramSettings
from webhook.settings import Settings as WebhookSettings
from wrapper.settings import Settings as WrapperSettings

Json = dict[str, Any]

SETTINGS: Mapping[str, type[ProgramSettings]] = {
    "webhook": WebhookSettings,
    "coordinator": CoordinatorSettings,
    "extender": ExtenderSettings,
    "wrapper": WrapperSettings,
    "redis": RedisSettings,
    "forecaster": ForecasterSettings,
    "dispatcher": DispatcherSettings,
}
BY_SWITCH = {"coordinator": {"APP_WRAPPERS", "PROVISIONING"}, "extender": {"APP_WRAPPERS"}}
"""Settings that follow from another value."""

_TEXT: Json = {"type": "string", "minLength": 1}
_ANY_TEXT: Json = {"type": "string"}
_ARRAY: Json = {"type": "array"}
_NAMES: Json = {"type": "array", "items": _TEXT, "uniqueItems": True}
_LABELS: Json = {"type": "object", "additionalProperties": {"type": "string"}}
_GATING: Json = {"type": "string", "enum": ["Webhook", "MutatingAdmissionPolicy"]}
_MAKERS: Json = {"type": "string", "enum": ["SelfSigned", "CertManager"]}
_QUANTITY: Json = {"type": ["string", "number"]}
_LIST = {"type": "object", "additionalProperties": _QUANTITY}
_RESOURCES: Json = {
    "type": "object",
    "properties": {"requests": _LIST, "limits": _LIST},
    "additionalProperties": False,
}
_REPLICAS: Json = {"type": ["integer", "null"], "minimum": 0, "maximum": 100}
_POLICIES: Json = {"type": "string", "enum": ["", "Always", "IfNotPresent", "Never"]}


@dataclass(frozen=True)
class Value:
    """One value: its path, its default, what is allowed and what it is for."""

    path: str
    default: Any
    schema: Json
    text: str


def values(resources: Mapping[str, Json]) -> list[Value]:
    """All values; `resources` are what the manifests ask for, by program."""
    return [*_general(), *_choices(), *_programs(resources)]


def _general() -> Iterator[Value]:
    yield Value("image.repository", "muster", _TEXT, "the image of all programs, as you pushed it")
    yield Value("image.tag", "", _ANY_TEXT, "its tag; empty: the version of the chart")
    yield Value("image.pullPolicy", "", _POLICIES, "empty: as Kubernetes has it")
    yield Value("image.pullSecrets", [], _ARRAY, "Secrets with which it is pulled")
    priority = "of the pods; empty: none, and they can be evicted for others"
    yield Value("priorityClassName", "system-cluster-critical", _ANY_TEXT, priority)
    yield Value("nodeSelector", {}, _LABELS, "the nodes that all pods may run on")
    yield Value("tolerations", [], _ARRAY, "of all pods")
    yield _on("crds.install", "the release holds the definitions of Gang and GangQueue")
    yield _on("crds.keep", "`helm uninstall` leaves them, and so all objects of theirs")


def _choices() -> Iterator[Value]:
    yield Value("gating", "Webhook", _GATING, "what gates pods; the policy needs Kubernetes 1.36")
    yield Value("certificates", "SelfSigned", _MAKERS, "what makes the certificates")
    yield _off("highAvailability", "three replicas of each server, no two on one node")
    yield _off("extender.enabled", "the extender as a Deployment, for your own kube-scheduler")
    yield _off("scheduler.enabled", "a second kube-scheduler with the extender in its pod")
    image = "registry.k8s.io/kube-scheduler:v1.36.3"
    yield Value("scheduler.image", image, _TEXT, "its image, of your cluster's version")
    yield _off("appWrappers.enabled", "AppWrappers; their definitions are applied apart")
    yield _off("appWrappers.secrets", "Secrets may be wrapped, too: muster-wrapper can read all")
    closed = "where muster-wrapper does nothing, beside kube-system and the release's namespace"
    yield Value("appWrappers.closedNamespaces", [], _NAMES, closed)
    yield _off("redis.enabled", "a Redis in which heads keep their state, by a label")
    valkey = "the image of its servers, Valkey or Redis 7.0 or newer; best with a digest"
    yield Value("redis.image", VALKEY, _TEXT, valkey)
    yield Value("redis.storage", "5Gi", _QUANTITY, "the volume of each server")
    yield _off("forecaster.enabled", "waiting Gangs say when they are expected to start")
    yield _off(
        "member.enabled", "other clusters may ask for room by GangOffers; their definition is apart"
    )
    yield _off("dispatcher.enabled", "gangs go to other clusters; the definition is apart")
    yield _off(
        "provisioning.enabled", "Cluster Autoscaler is asked for nodes where a queue says so"
    )
    yield _off(
        "dashboard.enabled",
        "the page of `muster dashboard`, over TLS; needs a Secret `muster-dashboard-tls`",
    )
    yield _off("roles.viewer", "the ClusterRole `muster-viewer`, to be bound")
    yield _off("roles.fit", "the ClusterRole `muster-fit`, to be bound")
    yield _off("roles.people", "`muster-admin`, `muster-namespace-admin` and `muster-user`")
    yield _off("volcanoLabels.enabled", "RayClusters for Volcano become gangs; Kubernetes 1.36")
    yield _off("nodeNamePolicy.enabled", "refuses `spec.nodeName` to those who may not bind pods")
    yield _off("monitoring.enabled", "metrics, alerts and dashboards for the Prometheus operator")
    yield _off("networkPolicies.enabled", "NetworkPolicies, which let all call the ports served")


def _on(path: str, text: str) -> Value:
    return Value(path, default=True, schema={"type": "boolean"}, text=text)


def _off(path: str, text: str) -> Value:
    return Value(path, default=False, schema={"type": "boolean"}, text=text)


def _programs(resources: Mapping[str, Json]) -> Iterator[Value]:
    for name, settings in SETTINGS.items():
        what = "how many there are; empty: 2, or 3 with highAvailability"
        if name in SCALED:
            yield Value(f"{name}.replicas", None, _REPLICAS, what)
        prefix = settings.model_config["env_prefix"]
        text = f"settings by the name of their variable without `{prefix}`"
        yield Value(f"{name}.settings", {}, settings_schema(name), text)
    for name, default in sorted(resources.items()):
        yield Value(
            f"{name}.resources",
            default,
            _RESOURCES,
            f"what a container `{name}` asks for and may have",
        )


def settings_schema(program: str) -> Json:
    """What the settings of a program may be, by its own class."""
    described = SETTINGS[program].model_json_schema()
    definitions = described.get("$defs", {})
    hidden = FIXED | BY_SWITCH.get(program, set())
    allowed = {
        name.upper(): _plain(_resolved(each, definitions))
        for name, each in described["properties"].items()
        if name.upper() not in hidden
    }
    return {"type": "object", "properties": allowed, "additionalProperties": False}


def _resolved(found: Json, definitions: Json) -> Json:
    if "$ref" in found:
        name = found["$ref"].rpartition("/")[2]
        return {**definitions[name], **{k: v for k, v in found.items() if k != "$ref"}}
    return found


def _plain(found: Json) -> Json:
    """Without what a reader of values has no use for; what is read as JSON may be YAML."""
    if found.get("contentMediaType") == "application/json":
        return {"type": ["array", "object", "string"]}
    kept = ("type", "enum", "anyOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
            "minLength", "pattern")  # fmt: skip
    return {key: found[key] for key in kept if key in found}


def schema(every: list[Value]) -> str:
    """values.schema.json: nothing is allowed that has no value here."""
    root: Json = _closed()
    for value in every:
        *folders, name = value.path.split(".")
        place = root
        for folder in folders:
            place = place["properties"].setdefault(folder, _closed())
        place["properties"][name] = value.schema
    head = {"$schema": "http://json-schema.org/draft-07/schema#"}
    # What Helm itself puts among the values of a chart that is a part of another.
    root["properties"]["global"] = {"type": "object"}
    return json.dumps({**head, **root}, indent=2) + "\n"


def _closed() -> Json:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def values_file(every: list[Value]) -> str:
    """values.yaml, each value with what it is for."""
    lines = ["# Written by `make chart`, as is the table of docs/install.md."]
    above: list[str] = []
    for value in sorted(every, key=lambda each: _rank(each.path, every)):
        *folders, name = value.path.split(".")
        for depth, folder in enumerate(folders):
            if above[: depth + 1] != folders[: depth + 1]:
                lines.append(f"{'  ' * depth}{folder}:")
        above = folders
        pad = "  " * len(folders)
        lines += [f"{pad}# {value.text}", *_default(pad, name, value.default)]
    return "\n".join(lines) + "\n"


def _rank(path: str, every: list[Value]) -> int:
    """The place of the first value with the same beginning."""
    first = path.split(".", maxsplit=1)[0]
    return next(at for at, each in enumerate(every) if each.path.split(".")[0] == first)


def _default(pad: str, name: str, default: Any) -> list[str]:
    text: str = yaml.safe_dump({name: default}, sort_keys=False)
    return [pad + line for line in text.splitlines()]


def table(every: list[Value]) -> str:
    """The table of docs/install.md; what several programs have alike is one row."""
    rows = [_row(each.path, _shown(each.default), each.text) for each in every if not _alike(each)]
    rows += [
        _row(
            "PROGRAM.replicas",
            "",
            f"of {_of('replicas', every)}; empty: 2, or 3 with highAvailability",
        ),
        _row(
            "PROGRAM.settings",
            "`{}`",
            f"of {_of('settings', every)}, by their variable without `MUSTER_PROGRAM_`",
        ),
        _row("CONTAINER.resources", "", f"requests (memory limit): {_amounts(every)}"),
    ]
    return "\n".join(("| value | default | what for |", "|---|---|---|", *rows)) + "\n"


def _row(*cells: str) -> str:
    path, default, text = cells
    return f"| `{path}` | {default} | {text} |"


def _alike(value: Value) -> bool:
    return value.path.endswith((".replicas", ".settings", ".resources"))


def _of(what: str, every: list[Value]) -> str:
    found = (each.path.split(".") for each in every)
    return ", ".join(program for program, *rest in found if rest == [what])


def _amounts(every: list[Value]) -> str:
    """What each container asks for, and its limit of memory."""
    asked = [each for each in every if each.path.endswith(".resources")]
    return "; ".join(f"`{each.path.split('.')[0]}` {_amount(each.default)}" for each in asked)


def _amount(resources: Json) -> str:
    asked = resources["requests"]
    return f"{asked['cpu']}, {asked['memory']} ({resources['limits']['memory']})"


def _shown(default: Any) -> str:
    return f"`{json.dumps(default)}`" if default not in (None, "") else ""

"""The schemas of Gang and GangQueue, from which the CRDs are written.

The pydantic models are the one source. `crd_yaml` turns them into CustomResourceDefinitions
with structural schemas; `python -m kube.objects.crds` writes them to manifests/crds, and a
test keeps the files equal to the models. What Muster writes itself is bounded
loosely: a validation must never stop the coordinator from mending an object that somebody
has edited or left behind.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from pydantic.json_schema import WithJsonSchema

from kube.objects import names

Json = dict[str, Any]

# As Kubernetes writes quantities in its own CRDs, without the minus sign.
_NUMBER = r"([0-9]+(\.[0-9]*)?)|(\.[0-9]+)"
QUANTITY_PATTERN = rf"^\+?({_NUMBER})(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$"

_MOST_POD_SETS = 1024  # CEL rules on the items of a list need a bound on its length

Quantity = Annotated[
    str | int,
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "pattern": QUANTITY_PATTERN,
        }
    ),
]
Quantities = dict[str, Quantity]
Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
Priority = Annotated[int, Field(ge=-(2**31), le=2**31 - 1, json_schema_extra={"format": "int32"})]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
Name = Annotated[str, Field(min_length=1, max_length=253)]


def _rules(*rules: tuple[str, str]) -> Json:
    """CEL rules as the schema extension that holds them."""
    found = [{"rule": rule, "message": message} for rule, message in rules]
    return {"x-kubernetes-validations": found}


def _map_of(*keys: str) -> Json:
    """A list whose items are told apart by these keys: the server refuses duplicates."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


class _Model(BaseModel):
    """Base of all models: camelCase outside."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


# Spec and status of a Gang have one writer. Tracking who owns which of their fields would be a
# third of what a write costs the API server, and half of the object.
_ATOMIC = ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})


class Condition(_Model):
    """One aspect of the state, in the form of all Kubernetes conditions."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Field(max_length=1024)] = ""
    message: Annotated[str, Field(max_length=32768)] = ""
    last_transition_time: Time | None = None
    observed_generation: Count | None = None


Conditions = Annotated[list[Condition], Field(json_schema_extra=_map_of("type"))]


# ---- Gang

_MINIMUM_RULE = (
    "!has(self.minimum) || (has(self.count) && self.minimum <= self.count)",
    "minimum must not exceed count",
)


class PodSet(_Model):
    """The head, or one worker group, of the gang."""

    model_config = ConfigDict(json_schema_extra=_rules(_MINIMUM_RULE))

    name: Name = Field(description="headgroup, or the name of a worker group.")
    count: Count = Field(default=0, description="Pods that the RayCluster wants.")
    minimum: Count = Field(default=0, description="Pods that must start at once.")
    hosts: Count = Field(default=1, description="Pods of one replica, where it is not one.")


class Topology(_Model):
    """Node labels within one value of which pods of the gang are to be together."""

    required: str = Field(default="", description="For all workers.")
    preferred: str = Field(default="", description="For all workers, where there is such room.")
    replica: str = Field(default="", description="For the pods of each replica of several hosts.")


class GangSpec(_Model):
    """What Muster understood of the RayCluster; edits are overwritten."""

    model_config = _ATOMIC

    queue: str = Field(default="", description="The GangQueue that the gang waits in.")
    priority: Priority = Field(default=0, description="Higher goes first.")
    ray_cluster_uid: str = Field(default="", description="The RayCluster that this gang is of.")
    pod_sets: Annotated[
        list[PodSet], Field(max_length=_MOST_POD_SETS, json_schema_extra=_map_of("name"))
    ] = []
    topology: Topology | None = None


class HolderShare(_Model):
    """Who holds how much: a controller, or a Namespace for its pods without one."""

    kind: str
    namespace: str = ""
    name: str
    amount: Quantity


class Shortage(_Model):
    """What stops the next pod of a pod set, and who holds it, on the nodes that may run the pod."""

    resource: str = Field(description="The resource that is shortest.")
    each: Quantity = Field(description="What one pod asks for.")
    needed: Quantity | None = Field(default=None, description="What the gang asks for in all.")
    free: Quantity = Field(description="What is free on all nodes, before any of it is placed.")
    left: Quantity | None = Field(
        default=None, description="What is left of it, once those that fit are placed."
    )
    largest: Quantity = Field(description="The most that is left on one node.")
    total: Quantity | None = Field(default=None, description="What there is of it, free or not.")
    holders: Annotated[
        list[HolderShare],
        Field(
            description="Who holds the most of it, at most three.",
            json_schema_extra={"x-kubernetes-list-type": "atomic"},
        ),
    ] = []


class PodSetStatus(_Model):
    """How far a pod set has come, and what it waits for."""

    name: Name
    count: Count = 0
    minimum: Count = 0
    gated: Count = Field(default=0, description="Pods with Muster's gate.")
    released: Count = Field(default=0, description="Pods that Muster released, each to a node.")
    not_released: Count = Field(
        default=0,
        description="Pods without the gate that Muster did not release: created before the opt-in, "
        "or their gate was removed.",
    )
    bound: Count = Field(default=0, description="Pods on their node, whoever released them.")
    ready: Count = 0
    kept: Count = Field(default=0, description="Slots that are kept for lost pods.")
    reason: str = ""
    message: str = ""
    shortage: Shortage | None = None


class PlacedShape(_Model):
    """Where the pods of one shape (and replica) go."""

    shape: Name = Field(description="Content hash of what matters to the scheduler.")
    replica: str = Field(default="", description="Set where numOfHosts is above 1.")
    requests: Quantities = Field(default={}, description="What one such pod takes.")
    nodes: dict[str, Annotated[int, Field(ge=1, json_schema_extra={"format": "int64"})]] = Field(
        default={}, description="Number of pods for each node."
    )
    wave: Count = Field(
        default=0,
        description="The pods are released once all of earlier waves are bound; 0 is the first.",
    )


class PlacedPodSet(_Model):
    """The assignments of one pod set."""

    name: Name
    assignments: list[PlacedShape] = []


class Placement(_Model):
    """Where the whole gang goes. Once it is written it is the gang's reservation."""

    epoch: Count = Field(default=0, description="Term of the coordinator that decided it.")
    pod_sets: Annotated[list[PlacedPodSet], Field(json_schema_extra=_map_of("name"))] = []


_EPOCH_RULE = (
    "self >= oldSelf",
    "written by an earlier leader: epoch must not decrease (to reset it, delete the Gang)",
)


class GangStatus(_Model):
    """What Muster has decided and done."""

    model_config = _ATOMIC

    phase: Literal["Gathering", "Queued", "Admitted", "Running", "Preempting", "Failed"] | None = (
        None
    )
    epoch: Annotated[Count, Field(json_schema_extra=_rules(_EPOCH_RULE))] | None = Field(
        default=None, description="Term of the coordinator that wrote this status."
    )
    decided: Count = Field(
        default=0, description="Placements decided so far; while 0, no pod can have been released."
    )
    position: Count | None = Field(default=None, description="Place in the queue, from 1 on.")
    ready: str = Field(default="", description="Pods that are ready, of all, such as 3/5.")
    ready_pods: Count = 0
    total_pods: Count = 0
    reason: str = Field(default="", description="Why the gang is in this phase, in one word.")
    message: str = Field(default="", description="The same for people, in numbers.")
    conditions: Conditions = []
    pod_sets: Annotated[list[PodSetStatus], Field(json_schema_extra=_map_of("name"))] = []
    placement: Placement | None = None


class Gang(_Model):
    """A gang: the pods of one RayCluster that must start together. It has the RayCluster's name."""

    spec: GangSpec = GangSpec()
    status: GangStatus | None = None


# ---- GangQueue


class LabelSelectorRequirement(_Model):
    """One expression of a label selector."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[list[str], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})] = []


class LabelSelector(_Model):
    """Labels and expressions that must all hold; an empty one matches everything."""

    model_config = _ATOMIC

    match_labels: dict[str, str] = {}
    match_expressions: Annotated[
        list[LabelSelectorRequirement],
        Field(json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ] = []


class Preemption(_Model):
    """When running gangs may be stopped for waiting ones."""

    within_queue: Literal["Never", "LowerPriority"] = Field(
        default="Never", description="For gangs of the same queue."
    )
    reclaim: Literal["Never", "LowerPriority", "Any"] = Field(
        default="Never", description="To take back quota that other queues have borrowed."
    )


class Timeouts(_Model):
    """How long the steps of a gang of this queue may take; absent means for ever."""

    admission_seconds: Annotated[Count | None, Field(ge=1)] = Field(
        default=None, description="From the first pod until the gang is placed."
    )
    ready_seconds: Annotated[Count | None, Field(ge=1)] = Field(
        default=None, description="From the placement until the minimum is ready."
    )


_LIMIT_RULES = (
    (
        "has(self.parent) || !has(self.borrowingLimit)",
        "borrowingLimit needs a parent to borrow from",
    ),
    ("has(self.parent) || !has(self.lendingLimit)", "lendingLimit needs a parent to lend to"),
)


class GangQueueSpec(_Model):
    """The rules of a queue."""

    model_config = ConfigDict(json_schema_extra=_rules(*_LIMIT_RULES))

    parent: Name | None = Field(default=None, description="The queue to borrow from.")
    quota: Quantities | None = Field(
        default=None, description="What the gangs of the queue may hold together."
    )
    borrowing_limit: Quantities | None = Field(
        default=None, description="How much of the parent's free quota may be taken beside it."
    )
    lending_limit: Quantities | None = Field(
        default=None, description="How much of the quota others may take while it is free."
    )
    namespace_selector: LabelSelector | None = Field(
        default=None, description="The namespaces whose gangs may use the queue."
    )
    node_selector: Annotated[
        dict[str, str] | None, Field(description="Labels of the nodes that its gangs may use.")
    ] = None
    ordering: Literal["Priority", "FIFO"] = Field(
        default="Priority", description="Priority, then first come; or first come alone."
    )
    when_blocked: Literal["Strict", "BestEffort", "Backfill"] = Field(
        default="BestEffort", description="What may pass a gang that does not fit."
    )
    preemption: Preemption | None = None
    timeouts: Timeouts | None = None


class GangQueueStatus(_Model):
    """What the queue holds now."""

    pending: Count = Field(default=0, description="Gangs that wait.")
    admitted: Count = Field(default=0, description="Gangs that are placed.")
    usage: Quantities = {}
    reserved: Quantities = {}
    borrowed: Quantities = {}
    conditions: Conditions = []


_PARENT_RULE = (
    "!has(self.spec) || !has(self.spec.parent) || self.spec.parent != self.metadata.name",
    "a queue cannot be its own parent",
)


class GangQueue(_Model):
    """A queue: quota, order and preemption for the gangs that wait in it."""

    model_config = ConfigDict(json_schema_extra=_rules(_PARENT_RULE))

    spec: GangQueueSpec = GangQueueSpec()
    status: GangQueueStatus | None = None


# ---- schemas


def structural_schema(model: type[BaseModel]) -> Json:
    """Turn a model into a structural schema: no references, no titles, no null."""
    schema = model.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    found: Json = _structural(schema, definitions)
    return found


def _structural(schema: Json, definitions: Json) -> Json:
    """One level of the schema, then those below it."""
    plain = _optional(_inlined(schema, definitions), definitions)
    kept = {key: plain[key] for key in sorted(plain, key=_rank) if not _is_noise(key, plain[key])}
    if "properties" in kept:
        below = kept["properties"].items()
        kept["properties"] = {name: _structural(each, definitions) for name, each in below}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _structural(kept[key], definitions)
    return kept


def _rank(key: str) -> int:
    """Put what people read first."""
    return ("description", "type").index(key) if key in ("description", "type") else 2


def _is_noise(key: str, value: object) -> bool:
    """A title says the name again; a default that means nothing would fill every object with it."""
    return key == "title" or (key == "default" and (not value or isinstance(value, dict)))


def _inlined(schema: Json, definitions: Json) -> Json:
    """Replace a reference by what it names; what stands beside it wins (its description)."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return {**definitions[reference.rpartition("/")[2]], **beside}


def _optional(schema: Json, definitions: Json) -> Json:
    """Reduce `X or null` to X: what may be null may as well be absent."""
    choices = schema.get("anyOf", [])
    some = [choice for choice in choices if choice != {"type": "null"}]
    if len(choices) != len(some) + 1 or len(some) != 1:
        return schema
    beside = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**_inlined(some[0], definitions), **beside}


# ---- definitions

_AGE: Json = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}

_GANG_COLUMNS: list[Json] = [
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Queue", "type": "string", "jsonPath": ".spec.queue"},
    {"name": "Position", "type": "integer", "jsonPath": ".status.position"},
    {"name": "Ready", "type": "string", "jsonPath": ".status.ready"},
    {"name": "Reason", "type": "string", "jsonPath": ".status.reason"},
    _AGE,
    {"name": "Message", "type": "string", "jsonPath": ".status.message", "priority": 1},
]
_QUEUE_COLUMNS: list[Json] = [
    {"name": "Parent", "type": "string", "jsonPath": ".spec.parent"},
    {"name": "Pending", "type": "integer", "jsonPath": ".status.pending"},
    {"name": "Admitted", "type": "integer", "jsonPath": ".status.admitted"},
    _AGE,
]


def gang_crd() -> Json:
    """Define Gang."""
    spelled = {"plural": "gangs", "singular": "gang", "kind": "Gang", "listKind": "GangList"}
    return _definition(Gang, spelled, "Namespaced", _GANG_COLUMNS)


def gang_queue_crd() -> Json:
    """Define GangQueue."""
    spelled = {
        "plural": "gangqueues",
        "singular": "gangqueue",
        "kind": "GangQueue",
        "listKind": "GangQueueList",
        "shortNames": ["gq"],
    }
    return _definition(GangQueue, spelled, "Cluster", _QUEUE_COLUMNS)


def _definition(model: type[BaseModel], spelled: Json, scope: str, columns: list[Json]) -> Json:
    version = {
        "name": names.API_VERSION.rpartition("/")[2],
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _with_type_meta(structural_schema(model))},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{spelled['plural']}.{names.GROUP}"},
        "spec": {"group": names.GROUP, "names": spelled, "scope": scope, "versions": [version]},
    }


def _with_type_meta(schema: Json) -> Json:
    text, whole = {"type": "string"}, {"type": "object"}
    type_meta = {"apiVersion": text, "kind": text, "metadata": whole}
    return {**schema, "properties": {**type_meta, **schema["properties"]}}


def crd_yaml() -> dict[str, str]:
    """Give the files of manifests/crds by name."""
    return dict(_files())


def _files() -> Iterator[tuple[str, str]]:
    definitions: list[Callable[[], Json]] = [gang_crd, gang_queue_crd]
    for define in definitions:
        found = define()
        text = yaml.dump(found, Dumper=_PlainDumper, sort_keys=False, width=100)
        header = (
            "# Generated by `python -m kube.objects.crds`; edit kube/objects/crds.py instead.\n"
        )
        yield f"{found['spec']['names']['plural']}.yaml", header + text


class _PlainDumper(yaml.SafeDumper):
    """YAML without anchors: what is used twice is written twice."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the signature of the library
        return True


def main(arguments: list[str]) -> int:
    """Write the files into the directory that is named, else where the repository has them."""
    directory = Path(arguments[0] if arguments else "manifests/crds")
    for name, text in crd_yaml().items():
        (directory / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

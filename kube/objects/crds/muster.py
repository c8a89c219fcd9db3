"""Defines the CustomResourceDefinitions of Muster's own kinds from their structs."""

import msgspec

from kube.objects import names
from kube.objects.clusters.gang_offer import GangOffer
from kube.objects.clusters.member_cluster import MemberCluster
from kube.objects.gang import Gang
from kube.objects.queues.queue import GangQueue
from kube.objects.schema import Json, structural_schema

_AGE: Json = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}

_GANG_COLUMNS: list[Json] = [
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Queue", "type": "string", "jsonPath": ".spec.queue"},
    {"name": "Position", "type": "integer", "jsonPath": ".status.position"},
    {"name": "Ready", "type": "string", "jsonPath": ".status.ready"},
    {"name": "Reason", "type": "string", "jsonPath": ".status.reason"},
    _AGE,
    {
        "name": "Cluster",
        "type": "string",
        "jsonPath": ".status.dispatch.cluster",
        "priority": 1,
    },
    # Not as a date: kubectl prints of those how long ago they are.
    {
        "name": "Expected Start",
        "type": "string",
        "jsonPath": ".status.expectedStart.time",
        "priority": 1,
    },
    {"name": "Message", "type": "string", "jsonPath": ".status.message", "priority": 1},
]
_ACTIVE = '.status.conditions[?(@.type=="Active")]'
_QUEUE_COLUMNS: list[Json] = [
    {"name": "Parent", "type": "string", "jsonPath": ".spec.parent"},
    {"name": "Usage", "type": "string", "jsonPath": ".status.summary"},
    {"name": "Pending", "type": "integer", "jsonPath": ".status.pending"},
    {"name": "Admitted", "type": "integer", "jsonPath": ".status.admitted"},
    {"name": "Active", "type": "string", "jsonPath": f"{_ACTIVE}.status"},
    _AGE,
    {"name": "Message", "type": "string", "jsonPath": f"{_ACTIVE}.message", "priority": 1},
]


_OFFER_COLUMNS: list[Json] = [
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Object", "type": "string", "jsonPath": ".spec.template.name"},
    {"name": "Attempt", "type": "integer", "jsonPath": ".spec.attempt"},
    {"name": "Reason", "type": "string", "jsonPath": ".status.reason"},
    _AGE,
    {"name": "Message", "type": "string", "jsonPath": ".status.message", "priority": 1},
]


_CONNECTED = '.status.conditions[?(@.type=="Connected")]'
_COMPATIBLE = '.status.conditions[?(@.type=="Compatible")]'
_MEMBER_COLUMNS: list[Json] = [
    {"name": "State", "type": "string", "jsonPath": ".spec.state"},
    {"name": "Connected", "type": "string", "jsonPath": f"{_CONNECTED}.status"},
    {"name": "Compatible", "type": "string", "jsonPath": f"{_COMPATIBLE}.status"},
    {"name": "Gangs", "type": "integer", "jsonPath": ".status.gangs"},
    _AGE,
    {"name": "Message", "type": "string", "jsonPath": f"{_CONNECTED}.message", "priority": 1},
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


def gang_offer_crd() -> Json:
    """Define GangOffer."""
    spelled = {
        "plural": "gangoffers",
        "singular": "gangoffer",
        "kind": "GangOffer",
        "listKind": "GangOfferList",
    }
    found = _definition(GangOffer, spelled, "Namespaced", _OFFER_COLUMNS)
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    template = schema["properties"]["spec"]["properties"]["template"]["properties"]
    del template["spec"]["x-kubernetes-embedded-resource"]  # it is the spec of one, not an object
    return found


def member_cluster_crd() -> Json:
    """Define MemberCluster."""
    spelled = {
        "plural": "memberclusters",
        "singular": "membercluster",
        "kind": "MemberCluster",
        "listKind": "MemberClusterList",
    }
    return _definition(MemberCluster, spelled, "Cluster", _MEMBER_COLUMNS)


def written() -> tuple[tuple[Json, tuple[str, ...]], ...]:
    """Give the definitions of what the coordinator writes, each with the parts that it writes."""
    return (gang_crd(), ("spec", "status")), (gang_queue_crd(), ("status",))


def _definition(
    struct: type[msgspec.Struct], spelled: Json, scope: str, columns: list[Json]
) -> Json:
    version = {
        "name": names.API_VERSION.rpartition("/")[2],
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _with_type_meta(structural_schema(struct))},
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

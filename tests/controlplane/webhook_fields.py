"""Changes each field of a webhook configuration in turn, by the API server's own schema of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.controlplane.rayclusters import Json

GROUP = "/apis/admissionregistration.k8s.io/v1"
SCHEMAS = "/openapi/v3" + GROUP
CA_BUNDLE = "/webhooks/0/clientConfig/caBundle"

_BOOKKEEPING = (
    *("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation"),
    *("managedFields", "name", "namespace", "resourceVersion", "selfLink", "uid"),
)
WRITTEN_BY_THE_API_SERVER = {"/apiVersion", "/kind", *(f"/metadata/{e}" for e in _BOOKKEEPING)}
"""What no client changes, whatever it sends."""

_SELECTOR: Mapping[str, object] = {
    "matchExpressions/0/key": "other",
    "matchExpressions/0/operator": "NotIn",
    "matchExpressions/0/values": ["other"],
    "matchLabels": {"other": "yes"},
}
_WEBHOOK: Mapping[str, object] = {
    "admissionReviewVersions": ["v1", "v2"],
    "clientConfig/service/name": "other",
    "clientConfig/service/namespace": "other",
    "clientConfig/service/path": "/other",
    "clientConfig/service/port": 444,
    "clientConfig/url": "https://other.example.com",
    "failurePolicy": "Fail",
    "matchConditions/0/expression": "true",
    "matchConditions/0/name": "other",
    "matchPolicy": "Exact",
    "name": "other.test.muster.dev",
    **{f"namespaceSelector/{at}": value for at, value in _SELECTOR.items()},
    **{f"objectSelector/{at}": value for at, value in _SELECTOR.items()},
    "rules/0/apiGroups": ["*"],
    "rules/0/apiVersions": ["*"],
    "rules/0/operations": ["*"],
    "rules/0/resources": ["*"],
    "rules/0/scope": "*",
    "sideEffects": "NoneOnDryRun",
    "timeoutSeconds": 30,
}
_OWNER: Mapping[str, object] = {
    "apiVersion": "v2",
    "blockOwnerDeletion": True,
    "controller": True,
    "kind": "Other",
    "name": "other",
    "uid": "other",
}
_COMMON: Mapping[str, object] = {
    "/metadata/annotations": {"other": "yes"},
    "/metadata/finalizers": ["test.muster.dev/other"],
    "/metadata/generateName": "other-",
    "/metadata/labels": {"other": "yes"},
    **{f"/metadata/ownerReferences/0/{at}": value for at, value in _OWNER.items()},
    **{f"/webhooks/0/{at}": value for at, value in _WEBHOOK.items()},
}
CHANGES: Mapping[str, Mapping[str, object]] = {
    "MutatingWebhookConfiguration": {**_COMMON, "/webhooks/0/reinvocationPolicy": "IfNeeded"},
    "ValidatingWebhookConfiguration": _COMMON,
}
"""Another valid value for each field, by kind."""


def configuration(kind: str, name: str, owner: Json) -> Json:
    """A configuration that is asked about nothing, with every field set; two webhooks."""
    selector = {
        "matchExpressions": [{"key": "test.muster.dev/none", "operator": "In", "values": ["x"]}],
        "matchLabels": {"test.muster.dev/none": "x"},
    }
    webhook = {
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "matchConditions": [{"name": "never", "expression": "false"}],
        "matchPolicy": "Equivalent",
        "namespaceSelector": selector,
        "objectSelector": selector,
        "rules": [_rule()],
        "sideEffects": "None",
        "timeoutSeconds": 1,
    }
    service = {"name": "muster-webhook", "namespace": "muster-system", "path": "/", "port": 443}
    called = {"service": service}, {"url": "https://none.example.com"}
    named = ("one.test.muster.dev", "two.test.muster.dev")
    meta = {"name": name, "labels": {"is": "set"}, "ownerReferences": [owner]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {**meta, "annotations": {"is": "set"}},
        "webhooks": [
            {**webhook, "name": each, "clientConfig": config}
            for each, config in zip(named, called, strict=True)
        ],
    }


def _rule() -> Json:
    return {
        "apiGroups": ["test.muster.dev"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["nothings"],
        "scope": "Namespaced",
    }


def fields(schemas: Json, kind: str) -> set[str]:
    """Where the fields of a kind are, each list of objects by its first."""
    of_group = "io.k8s.api.admissionregistration.v1."
    return {*_leaves(schemas, {"$ref": of_group + kind}, "")}


def _leaves(schemas: Json, schema: Json, at: str) -> Iterator[str]:
    found = _resolved(schemas, schema)
    items = _resolved(schemas, found.get("items", {}))
    if at in WRITTEN_BY_THE_API_SERVER:
        yield at
    elif found.get("properties"):
        for name, each in found["properties"].items():
            yield from _leaves(schemas, each, f"{at}/{name}")
    elif items.get("properties"):
        yield from _leaves(schemas, items, f"{at}/0")
    else:
        yield at


def _resolved(schemas: Json, schema: Json) -> Json:
    (referred,) = schema.get("allOf", [schema])
    name = referred.get("$ref", "").rpartition("/")[2]
    found: Json = schemas[name] if name else schema
    return found


def change(at: str, value: object) -> list[Json]:
    """The JSON patch that changes one field, and what excludes it."""
    if at.endswith("clientConfig/url"):
        at = at.replace("webhooks/0", "webhooks/1")
    return [{"op": "add", "path": at, "value": value}]

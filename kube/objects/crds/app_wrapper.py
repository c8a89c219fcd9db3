"""The CustomResourceDefinitions of AppWrapper, in both of its API groups.

Every version has one schema, which names the fields of both generations: what was written by one
version is then read by the other without a conversion, and nothing of it is pruned. What neither
generation names is pruned, and kubectl warns of it, as it does with the definitions of MCAD and
CodeFlare. Wrapped objects are kept as they are.
"""

from typing import Final

from kube.objects import names
from kube.objects.app_wrapper import AppWrapperSpec, AppWrapperStatus
from kube.objects.base import LabelSelector
from kube.objects.schema import Json, rules, structural_schema

MOST_ITEMS: Final = 1000
"""Objects in one AppWrapper; etcd takes 1.5 MiB, which small ones fill earlier."""

_ANY: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

_QUOTA_RESERVED: Final = '.status.conditions[?(@.type=="QuotaReserved")].status'
_DEPLOYED: Final = '.status.conditions[?(@.type=="ResourcesDeployed")].status'
_UNHEALTHY: Final = '.status.conditions[?(@.type=="Unhealthy")].status'
_MORE_COLUMNS: Final[list[Json]] = [
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Reason", "type": "string", "jsonPath": ".status.reason", "priority": 1},
    {"name": "Message", "type": "string", "jsonPath": ".status.message", "priority": 1},
]
# kubectl asks for this version of either generation, and prints the first of two fields there is:
# MCAD's word where there is one. CodeFlare's own three columns, empty for MCAD's, are wide.
_V1BETA2_COLUMNS: Final[list[Json]] = [
    {"name": "Status", "type": "string", "jsonPath": ".status['state','phase']"},
    {"name": "Condition", "type": "string", "jsonPath": ".status['queuejobstate','reason']"},
    {"name": "Quota Reserved", "type": "string", "jsonPath": _QUOTA_RESERVED, "priority": 1},
    {"name": "Resources Deployed", "type": "string", "jsonPath": _DEPLOYED, "priority": 1},
    {"name": "Unhealthy", "type": "string", "jsonPath": _UNHEALTHY, "priority": 1},
    *_MORE_COLUMNS,
]
_V1BETA1_COLUMNS: Final[list[Json]] = [
    {"name": "State", "type": "string", "jsonPath": ".status.state"},
    {"name": "Condition", "type": "string", "jsonPath": ".status.queuejobstate"},
    *_MORE_COLUMNS,
]

_SPEC_RULES: Final = (
    (
        "has(self.components) != has(self.resources)",
        "exactly one of components (v1beta2) and resources (v1beta1) lists the wrapped objects",
    ),
    (
        (
            "has(self.managedBy) == has(oldSelf.managedBy) && "
            "(!has(self.managedBy) || self.managedBy == oldSelf.managedBy)"
        ),
        "managedBy cannot be changed",
    ),
)
_ITEMS_RULE: Final = (
    "!has(self.Items) || size(self.Items) == 0",
    "Items is of MCAD before 1.33: list the objects in GenericItems",
)


def codeflare_crd() -> Json:
    """Define the AppWrapper of workload.codeflare.dev: CodeFlare's, and the later one of MCAD."""
    versions = [
        _version(names.CODEFLARE_V1BETA2, _V1BETA2_COLUMNS, storage=True),
        _version(names.CODEFLARE_V1BETA1, _V1BETA1_COLUMNS, storage=False),
    ]
    return _definition(names.CODEFLARE_V1BETA2, versions, ["aw"])


def mcad_crd() -> Json:
    """Define the AppWrapper of mcad.ibm.com, which MCAD had until release 1.34."""
    versions = [_version(names.MCAD_V1BETA1, _V1BETA1_COLUMNS, storage=True)]
    # Without the short name, which kubectl could not tell from the other group's.
    return _definition(names.MCAD_V1BETA1, versions, [])


def _definition(api_version: str, versions: list[Json], short_names: list[str]) -> Json:
    group, kind = api_version.partition("/")[0], names.APP_WRAPPER_KIND
    spelled: Json = {
        "plural": names.APP_WRAPPERS,
        "singular": kind.lower(),
        "kind": kind,
        "listKind": f"{kind}List",
    }
    spelled |= {"shortNames": short_names} if short_names else {}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{names.APP_WRAPPERS}.{group}",
            "labels": {"app.kubernetes.io/part-of": "muster"},
        },
        "spec": {"group": group, "names": spelled, "scope": "Namespaced", "versions": versions},
    }


def _version(api_version: str, columns: list[Json], *, storage: bool) -> Json:
    return {
        "name": api_version.partition("/")[2],
        "served": True,
        "storage": storage,
        "schema": {"openAPIV3Schema": _schema()},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }


def _schema() -> Json:
    text, whole = {"type": "string"}, {"type": "object"}
    properties = {
        "apiVersion": text,
        "kind": text,
        "metadata": whole,
        "spec": _spec(),
        "status": _status(),
    }
    described = "Objects that are created together, once the pods of all of them have their nodes."
    return {
        "description": described,
        "type": "object",
        "properties": properties,
        "required": ["spec"],
    }


def _spec() -> Json:
    """What is read, and what MCAD's manifests have beside it."""
    schema = structural_schema(AppWrapperSpec)
    properties = schema["properties"]
    properties["service"] = {"type": "object", "properties": {"spec": _ANY}}
    properties["selector"] = structural_schema(LabelSelector)
    properties["components"] |= {"maxItems": MOST_ITEMS}
    properties["resources"] = _resources(properties["resources"])
    return schema | rules(*_SPEC_RULES)


def _resources(schema: Json) -> Json:
    properties = schema["properties"]
    properties["GenericItems"] |= {"maxItems": MOST_ITEMS}
    properties["Items"] = {"type": "array", "items": _ANY, "maxItems": MOST_ITEMS}
    sizes = properties["GenericItems"]["items"]["properties"]["custompodresources"]["items"]
    # Nothing is written into an object that its user did not write.
    del sizes["properties"]["replicas"]["default"]
    return schema | rules(_ITEMS_RULE)


def _status() -> Json:
    """Controllers alone write it: what others recorded there is kept too."""
    return structural_schema(AppWrapperStatus) | {"x-kubernetes-preserve-unknown-fields": True}

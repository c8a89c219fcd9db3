"""Decides which objects of a cluster are Muster's: by their label and their place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from cli.removal.objects import AnyObject, OwnMeta
from kube.objects.names import (
    APP_WRAPPERS,
    CODEFLARE_GROUP,
    DEFAULT_NAMESPACE,
    GROUP,
    KUBE_SYSTEM,
    MCAD_GROUP,
    PART_OF,
    PART_OF_MUSTER,
)

COORDINATOR: Final = "muster-coordinator"
WRAPPER: Final = "muster-wrapper"
EXTENDER: Final = "muster-extender"
SCHEDULER: Final = "muster-scheduler"
STOPPED_PROGRAMS: Final = (COORDINATOR, WRAPPER)
"""The programs that decide, which must stand still while gates are taken off."""

RULES: Final = ("muster-webhook", "muster-app-wrapper", "muster-gate")
"""Names of what gates pods, which may be there without the label."""

PREFIX: Final = "muster-"
OWN_DEFINITIONS: Final = (f"gangs.{GROUP}", f"gangqueues.{GROUP}")
WRAPPER_DEFINITIONS: Final = tuple(
    f"{APP_WRAPPERS}.{each}" for each in (CODEFLARE_GROUP, MCAD_GROUP)
)
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "": (
        *(
            "configmaps",
            "endpoints",
            "namespaces",
            "pods",
            "secrets",
            "serviceaccounts",
            "services",
        ),
    ),
    "admissionregistration.k8s.io": (
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    ),
    "apiextensions.k8s.io": ("customresourcedefinitions",),
    "apps": ("controllerrevisions", "deployments", "replicasets", "statefulsets"),
    "cert-manager.io": ("certificates", "issuers"),
    "coordination.k8s.io": ("leases",),
    "discovery.k8s.io": ("endpointslices",),
    "monitoring.coreos.com": ("podmonitors", "prometheusrules"),
    "networking.k8s.io": ("networkpolicies",),
    "policy": ("poddisruptionbudgets",),
    "rbac.authorization.k8s.io": (
        "clusterrolebindings",
        "clusterroles",
        "rolebindings",
        "roles",
    ),
}
"""All kinds of objects that Muster's manifests and programs make, by API group, and those that
controllers make of them, labels and all."""

HELM: Final = "app.kubernetes.io/managed-by"
RELEASE: Final = "meta.helm.sh/release-name"
RELEASE_NAMESPACE: Final = "meta.helm.sh/release-namespace"


@dataclass(frozen=True, slots=True)
class Release:
    """A release of Helm."""

    name: str
    namespace: str

    def __str__(self) -> str:
        return f"helm uninstall {self.name} -n {self.namespace}"


def is_labelled(meta: OwnMeta) -> bool:
    """Say whether an object has the label of all that Muster's manifests make."""
    return meta.labels.get(PART_OF) == PART_OF_MUSTER


def is_rule(meta: OwnMeta) -> bool:
    """Say whether a webhook configuration, or the binding of a policy, is Muster's."""
    return meta.name in RULES or (is_labelled(meta) and meta.name.startswith(PREFIX))


def is_ours(group: str, plural: str, meta: OwnMeta, home: str) -> bool:
    """Say whether a labelled object is Muster's by its kind, place and name too.

    The label alone is no proof: other software may be part of something of this name, and users
    may label what they write for Muster, as their GangQueues.
    """
    if not is_labelled(meta) or plural not in KINDS.get(group, ()):
        return False
    mine = (
        meta.name.startswith(PREFIX)
        or meta.name == PART_OF_MUSTER
        or meta.name.endswith(GROUP)
        or meta.name in WRAPPER_DEFINITIONS
    )
    return meta.namespace == home if meta.namespace not in ("", KUBE_SYSTEM) else mine


def helm_releases(found: Iterable[AnyObject]) -> tuple[Release, ...]:
    """Name the releases of Helm that objects are of."""
    mine = {
        Release(meta.annotations.get(RELEASE, "RELEASE"), _namespace_of(meta))
        for meta in (each.metadata for each in found)
        if meta.labels.get(HELM) == "Helm"
    }
    return tuple(sorted(mine, key=str))


def _namespace_of(meta: OwnMeta) -> str:
    return meta.annotations.get(RELEASE_NAMESPACE, meta.namespace or DEFAULT_NAMESPACE)

"""Copies a RayCluster under another name, without what only the one that exists may have."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from cli.managing.cluster import autoscales
from cli.managing.values import check_name, part
from kube.objects import names

Json = dict[str, Any]

_NOT_COPIED: Final = (
    names.HELD,
    names.WOKEN,
    names.RETRY,
    names.APP_WRAPPER,
    names.APP_WRAPPER_UID,
    names.APP_WRAPPER_GROUP,
    names.RAY_NO_OTHER_HEAD,
    "kubectl.kubernetes.io/last-applied-configuration",
    "ray.io/external-storage-namespace",
    "ray.io/job-submission-mode",
)
_NOT_COPIED_PREFIXES: Final = ("ray.io/originated-from-", "meta.helm.sh/")


def copy_of(cluster: Mapping[str, Any], name: str) -> Json:
    """Return a new RayCluster like one that exists.

    It runs, has the least number of workers where Ray's autoscaler decides, and stores its state
    under a name of its own.
    """
    meta = cluster["metadata"]
    spec: Json = copy.deepcopy(dict(cluster["spec"]))
    for field in ("suspend", "managedBy"):
        spec.pop(field, None)
    for group in spec.get("workerGroupSpecs") or ():
        group.pop("scaleStrategy", None)
        if autoscales(spec):
            group["replicas"] = group.get("minReplicas", 0)
    labels = _kept(part(meta, "labels"))
    _unshare(spec, labels)
    metadata: Json = {"name": check_name("NAME", name), "namespace": meta["namespace"]}
    metadata |= {"labels": labels} if labels else {}
    annotations = _kept(part(meta, "annotations"))
    metadata |= {"annotations": annotations} if annotations else {}
    return {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCluster",
        "metadata": metadata,
        "spec": spec,
    }


def _kept(found: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in found.items()
        if key not in _NOT_COPIED and not key.startswith(_NOT_COPIED_PREFIXES)
    }


def _unshare(spec: Json, labels: Mapping[str, str]) -> None:
    """Leave out where the other one stores its state: two that share it break each other."""
    if names.HEAD_FAULT_TOLERANCE in labels:
        spec.pop("gcsFaultToleranceOptions", None)
    part(spec, "gcsFaultToleranceOptions").pop("externalStorageNamespace", None)

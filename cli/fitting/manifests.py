"""Builds the objects for dry runs: each object as if new, and one pod of each pod set."""

from collections.abc import Iterator, Mapping
from typing import Any

Manifest = Mapping[str, Any]

HEAD_GROUP = "headgroup"
_OF_NEW = ("name", "generateName", "labels", "annotations", "finalizers")


def as_new(body: Manifest, namespace: str) -> Manifest:
    """Return an object as it is created, without what only one that exists has."""
    rest = {key: value for key, value in body.items() if key not in ("status", "metadata")}
    return {**rest, "metadata": {**_kept(body.get("metadata"), _OF_NEW), "namespace": namespace}}


def pods_of(spec: Manifest, owner: str, namespace: str) -> dict[str, Manifest]:
    """Return a pod by pod set, of the templates of a RayCluster; without those that are none."""
    return {
        pod_set: pod_of(template, f"{owner}-{pod_set}-", namespace)
        for pod_set, template in _templates(spec)
        if isinstance(template, Mapping)
    }


def _templates(spec: Manifest) -> Iterator[tuple[str, Any]]:
    head, workers = spec.get("headGroupSpec"), spec.get("workerGroupSpecs")
    if isinstance(head, Mapping):
        yield HEAD_GROUP, head.get("template")
    for each in workers if isinstance(workers, list) else ():
        if isinstance(each, Mapping) and each.get("groupName"):
            yield str(each["groupName"]), each.get("template")


def pod_of(template: Manifest, prefix: str, namespace: str) -> Manifest:
    """Return a pod of a template, with a name that begins like this."""
    kept = _kept(template.get("metadata"), ("labels", "annotations"))
    metadata = {**kept, "generateName": prefix, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec")}


def _kept(metadata: Any, keys: tuple[str, ...]) -> Manifest:
    found = metadata if isinstance(metadata, Mapping) else {}
    return {key: found[key] for key in keys if key in found}

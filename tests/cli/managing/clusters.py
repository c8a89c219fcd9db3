"""RayClusters as the API server has them, for the tests of what may be done to them."""

import copy
from typing import Any

Json = dict[str, Any]


def pods(image: str = "ray:1", **spec: Any) -> Json:
    """A template with the container of Ray."""
    return {"spec": {"containers": [{"name": "ray", "image": image}], **spec}}


def group(name: str = "workers", **fields: Any) -> Json:
    """A worker group with the defaults of KubeRay's definition."""
    usual = {"replicas": 2, "minReplicas": 0, "maxReplicas": 4, "numOfHosts": 1}
    return {"groupName": name, "rayStartParams": {}, "template": pods(), **usual, **fields}


def cluster(name: str = "train", *groups: Json, **spec: Any) -> Json:
    """A RayCluster of a person."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {"muster.dev/gang": "true"},
            "annotations": {},
        },
        "spec": {
            "rayVersion": "2.52.0",
            "headGroupSpec": {"rayStartParams": {}, "template": pods()},
            "workerGroupSpecs": list(groups) or [group()],
            **spec,
        },
        "status": {"state": "ready"},
    }


def with_changes(found: Json, **changes: Any) -> Json:
    """The same with another value at each path: `spec__suspend=True`; numbers index lists."""
    changed = copy.deepcopy(found)
    for path, value in changes.items():
        *folders, last = path.split("__")
        at: Any = changed
        for folder in folders:
            at = at[int(folder)] if folder.isdigit() else at.setdefault(folder, {})
        at[last] = value
    return changed

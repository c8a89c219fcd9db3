"""RayClusters for the tests, in a line each."""

from typing import Any

import msgspec

from kube.objects.ray import RayCluster

Json = dict[str, Any]


GPU = {"groupName": "gpu", "replicas": 4, "minReplicas": 1, "maxReplicas": 8}


def cluster(
    *groups: Json,
    annotations: Json | None = None,
    labels: Json | None = None,
    **spec: Any,
) -> RayCluster:
    metadata = {"name": "rc", "annotations": annotations, "labels": labels}
    return read_cluster({"metadata": metadata, "spec": {"workerGroupSpecs": groups, **spec}})


def read_cluster(raw: Json) -> RayCluster:
    """Decode a RayCluster as the watch does: templates are kept as they are written."""
    return msgspec.json.decode(msgspec.json.encode(raw), type=RayCluster)

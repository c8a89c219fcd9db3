"""What does the Gang object of a RayCluster say, and does the record say it already?"""

from typing import Any

import msgspec

from kube import names
from kube.objects import Gang, RayCluster
from kube.ray import GangTerms, PodSetTerms

Spec = dict[str, Any]


def spec_of(cluster_uid: str, priority: int, terms: GangTerms | None) -> Spec:
    """The spec as understood; a Ray cluster that cannot be understood has no pod sets."""
    return {
        "queue": terms.queue if terms is not None else names.DEFAULT_QUEUE,
        "priority": priority,
        "rayClusterUid": cluster_uid,
        "podSets": [
            {"name": each.name, "count": each.count, "minimum": each.minimum}
            for each in (terms.pod_sets if terms is not None else ())
        ],
    }


def spec_recorded(gang: Gang) -> Spec:
    """The spec that a Gang object holds, in the same form."""
    found: Spec = msgspec.to_builtins(gang.spec)
    found["podSets"] = list(found["podSets"])
    return found


def terms_recorded(gang: Gang) -> GangTerms:
    """The terms that an admitted gang was decided on, for when its annotations are broken since."""
    return GangTerms(
        queue=gang.spec.queue,
        priority_class="",
        pod_sets=tuple(
            PodSetTerms(name=each.name, count=each.count, minimum=each.minimum, hosts=1)
            for each in gang.spec.pod_sets
        ),
        expected_duration=None,
        unsupported=(),
    )


def body_of(cluster: RayCluster, spec: Spec) -> dict[str, Any]:
    """The Gang object to create: named and owned by the RayCluster, so that it goes with it."""
    meta = cluster.metadata
    owner = {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCluster",
        "name": meta.name,
        "uid": meta.uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Gang",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "ownerReferences": [owner],
        },
        "spec": spec,
    }


def is_of(gang: Gang, cluster_uid: str) -> bool:
    """Whether the Gang is that of this very RayCluster, not of an earlier one of its name."""
    return any(owner.uid == cluster_uid for owner in gang.metadata.owner_references)

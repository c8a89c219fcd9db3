"""Builds the Gang object of a RayCluster, and compares it with the recorded one."""

from dataclasses import asdict
from typing import Any

import msgspec
import msgspec.structs

from kube.gang.source import GangSource
from kube.objects import names
from kube.objects.gang import Gang
from kube.ray.gang_terms import GangTerms, PodSetTerms, TopologyTerms

Spec = dict[str, Any]


def spec_of(cluster_uid: str, queue: str, priority: int, terms: GangTerms | None) -> Spec:
    """The spec as understood; a Ray cluster that cannot be understood has no pod sets."""
    spec: Spec = {
        "queue": queue,
        "priority": priority,
        "rayClusterUid": cluster_uid,
        "podSets": [
            {"name": each.name, "count": each.count, "minimum": each.minimum, "hosts": each.hosts}
            for each in (terms.pod_sets if terms is not None else ())
        ],
    }
    topology = terms.topology if terms is not None else None
    return _brief(spec | {"topology": asdict(topology) if topology else None})


def spec_recorded(gang: Gang) -> Spec:
    """The spec that a Gang object holds, in the same form."""
    found: Spec = msgspec.to_builtins(gang.spec)
    return _brief(found)


def _brief(spec: Spec) -> Spec:
    """The spec without what goes without saying: one host, no topology."""
    pod_sets = [
        {key: value for key, value in each.items() if (key, value) != ("hosts", 1)}
        for each in spec["podSets"]
    ]
    said = {key: label for key, label in (spec.pop("topology") or {}).items() if label}
    return {**spec, "podSets": pod_sets, **({"topology": said} if said else {})}


def terms_recorded(gang: Gang) -> GangTerms:
    """The terms that an admitted gang was decided on, for when its annotations are broken since."""
    topology = gang.spec.topology
    return GangTerms(
        queue=gang.spec.queue,
        priority_class="",
        pod_sets=tuple(
            PodSetTerms(name=each.name, count=each.count, minimum=each.minimum, hosts=each.hosts)
            for each in gang.spec.pod_sets
        ),
        expected_duration=None,
        topology=TopologyTerms(**msgspec.structs.asdict(topology)) if topology else None,
    )


def body_of(source: GangSource, spec: Spec) -> dict[str, Any]:
    """The Gang object to create: owned by what it is the gang of, so that it goes with it."""
    meta, found = source.metadata, source.owner
    owner = {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "name": found.name,
        "uid": found.uid,
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

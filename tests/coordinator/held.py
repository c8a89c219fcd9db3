"""Held Ray clusters in a world in memory: what the webhook does to them, and their foreseen pods.

The toy KubeRay adds nothing to templates, so its pods are foreseen by making them as it does; that
the real one's are foreseen is tested against the real one.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen, ForeseenPodSet, Outlook
from kube.gang.nested import SPEC_FIELDS
from kube.gang.sent import RAY_RESOURCES
from kube.gang.source import GangSource
from kube.objects import names
from kube.objects.pod_templates import TemplatePod
from kube.ray.gang_terms import PodSetTerms
from tests.coordinator.api import Api, Key
from tests.coordinator.builders import TEAM, Json, gang_of, pod_of


def foresee_in(api: Api) -> Any:
    """Foresee the pods that the toy KubeRay makes."""

    def foresee(source: GangSource, admission: Admission) -> Outlook:
        if source.offered is not None:
            return _offered(api, source, admission)
        if source.resumable is None:
            return source.foresee(admission)
        meta = source.metadata
        made = _version(api, meta.uid, meta.generation)
        pod_sets = tuple(_pod_sets(made, source.resumed().pod_sets_wanted))
        return Foreseen(meta.name, meta.uid, pod_sets)

    return foresee


def _offered(api: Api, source: GangSource, admission: Admission) -> Outlook:
    """Foresee the pods of the RayCluster that an offer is about; of others it says them itself."""
    outlook, offered = source.foresee(admission), source.offered
    is_of_ray = offered is not None and offered.kind in RAY_RESOURCES
    if not isinstance(outlook, Foreseen) or not is_of_ray:
        return outlook
    offer = api.get(Key("gangoffers", source.metadata.namespace, source.owner.name))
    asked = offer["spec"]["template"]
    meta = {"namespace": source.metadata.namespace, "uid": source.metadata.uid}
    named = {"name": asked["name"], "labels": asked["labels"], "annotations": asked["annotations"]}
    spec = asked["spec"].get(SPEC_FIELDS.get(asked["kind"], ""), asked["spec"])
    made = {"kind": "RayCluster", "metadata": {**meta, **named}, "spec": spec}
    pod_sets = tuple(_pod_sets(made, source.resumed().pod_sets_wanted))
    return Foreseen(asked["name"], source.metadata.uid, pod_sets)


def _version(api: Api, uid: str, generation: int) -> Json:
    """A Ray cluster as it was: what watches tell is late."""
    changes = (change.new for change in reversed(api.history) if change.key.plural == "rayclusters")
    wanted = {"uid": uid, "generation": generation}
    return next(obj for obj in changes if obj and wanted.items() <= obj["metadata"].items())


def _pod_sets(made: Json, wanted: tuple[PodSetTerms, ...]) -> Iterator[ForeseenPodSet]:
    spec = made["spec"]
    groups = {each["groupName"]: each for each in spec["workerGroupSpecs"]}
    groups[names.RAY_HEAD_GROUP] = spec["headGroupSpec"]
    for terms in wanted:
        pod = pod_of(made, terms.name, "", groups[terms.name]["template"], "", [names.GATE])
        found = msgspec.convert(pod, TemplatePod)
        yield ForeseenPodSet(terms.name, terms.count, terms.hosts, found)


def held(cluster: Json) -> Json:
    """What the webhook makes of a Ray cluster that is to be held."""
    cluster["spec"]["suspend"] = True
    cluster["metadata"]["annotations"] |= {
        names.CREATE_PODS: names.CREATE_WHEN_ADMITTED,
        names.HELD: "true",
    }
    return cluster


def held_gang(name: str, workers: int, **more: Any) -> Json:
    """A held Ray cluster with a head and so many workers, of 1 CPU each."""
    return held(gang_of(name, workers, **more))


def cluster_of(api: Api, name: str) -> Json:
    """The Ray cluster as it is now."""
    return api.get(Key("rayclusters", TEAM, name))


def is_suspended(api: Api, name: str) -> bool:
    """Whether a Ray cluster is suspended now."""
    return bool(cluster_of(api, name)["spec"].get("suspend"))


def had_pods(api: Api, name: str) -> bool:
    """Whether a pod of a Ray cluster existed at any moment."""
    created = (change.new for change in api.history if change.key.plural == "pods")
    labels = (pod["metadata"].get("labels", {}) for pod in created if pod is not None)
    return any(each.get(names.RAY_CLUSTER) == name for each in labels)

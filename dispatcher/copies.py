"""Builds a member's objects for an original on the manager: its GangOffer and its copy. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from dispatcher.reading import (
    MANAGER,
    ORIGIN,
    SENT,
    Answer,
    Copy,
    Original,
    Wishes,
    parsed,
)
from kube.gang.nested import RAY_CLUSTER, SPEC_FIELDS
from kube.gang.sent import WRAPPER_RESOURCES, typed
from kube.objects import names
from kube.objects.base import Labels
from kube.objects.clusters.gang_offer import FINALIZER, LONGEST_NAME, OFFER_KIND

Json = dict[str, Any]

OF_THE_MANAGER = {
    "kubectl.kubernetes.io/last-applied-configuration",
    names.HELD,
    names.WOKEN,
    names.MADE_FOR,
    names.DISPATCHED,
    names.CREATED_BY,
    SENT,
}
"""Annotations that say something of the object on the manager alone."""


def why_never(original: Original) -> str:
    """Say why an object cannot be sent to any member; empty where it can."""
    meta = original.metadata
    if len(meta.name) > LONGEST_NAME:
        return f"its name has more than {LONGEST_NAME} characters"
    if names.KUEUE_QUEUE in meta.labels:
        return f"label {names.KUEUE_QUEUE}: Kueue would send it, too"
    return ""


def offer_name(original: Original, attempt: int) -> str:
    """Name the GangOffer of an attempt."""
    meta = original.metadata
    return f"{meta.name}-{meta.uid}-{attempt}"


def offer_body(original: Original, attempt: int, manager: str, lost_after: int) -> Json:
    """Return the GangOffer that asks for room; it is never created accepted."""
    meta = original.metadata
    template = {
        **typed(original.kind),
        "name": meta.name,
        "labels": _labels(original),
        "annotations": dict(_annotations(meta.annotations)),
        "spec": _spec(original),
    }
    return {
        "apiVersion": names.API_VERSION,
        "kind": OFFER_KIND,
        "metadata": {
            "name": offer_name(original, attempt),
            "namespace": meta.namespace,
            "labels": {MANAGER: manager, ORIGIN: meta.uid},
            "finalizers": [FINALIZER],
        },
        "spec": {
            **({"lostAfterSeconds": lost_after} if lost_after else {}),
            "manager": manager,
            "uid": meta.uid,
            "attempt": attempt,
            "template": template,
        },
    }


def acceptance(answer: Answer, uid: str, version: str, term: int) -> list[Json]:
    """Return the patch that accepts an offer, if it is still the one that was read."""
    path = "/spec/acceptedBy"
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace" if answer.accepted_by else "add", "path": path, "value": term},
    ]


def leave(answer: Answer, until: str) -> list[Json]:
    """Return the patch that lets a member stop gangs for an offer, until a moment of its clock."""
    version = answer.metadata.resource_version
    return [
        {"op": "test", "path": "/metadata/uid", "value": answer.metadata.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/spec/mayStopGangsUntil", "value": until},
    ]


def copy_body(original: Original, answer: Answer, manager: str) -> Json:
    """Return what is created for an offer that was started."""
    meta = original.metadata
    annotations = {**dict(_annotations(meta.annotations)), SENT: original.wishes.text()}
    if original.kind != RAY_CLUSTER:
        annotations[names.MADE_FOR] = f"{answer.metadata.name}/{answer.metadata.uid}"
    owner = {
        "apiVersion": names.API_VERSION,
        "kind": OFFER_KIND,
        "name": answer.metadata.name,
        "uid": answer.metadata.uid,
    }
    return {
        **typed(original.kind),
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": {**_labels(original), MANAGER: manager, ORIGIN: meta.uid},
            "annotations": annotations,
            "ownerReferences": [owner],
        },
        "spec": _spec(original),
    }


def wishes_patch(original: Original, copy: Copy) -> list[Json]:
    """Return the patch that carries what its user changed since; empty where nothing was.

    Only what changed goes down: with an autoscaler the member owns the numbers otherwise.
    """
    text = original.wishes.text()
    if copy.sent == text:
        return []
    version = copy.metadata.resource_version
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        *_changes(original, copy),
        {"op": "add", "path": f"/metadata/annotations/{SENT.replace('/', '~1')}", "value": text},
    ]


def _changes(original: Original, copy: Copy) -> Iterator[Json]:
    now = original.wishes
    if now.spec:
        yield {"op": "replace", "path": "/spec", "value": _spec(original)}
        return
    before = parsed(copy.sent.encode()) if copy.sent else {}
    yield from _suspend(now, before)
    yield from _replicas(now.replicas, before.get("replicas") or {}, copy)


def _suspend(now: Wishes, before: Mapping[str, Any]) -> Iterator[Json]:
    if now.suspend != bool(before.get("suspend")):
        yield {"op": "add", "path": "/spec/suspend", "value": now.suspend}


def _replicas(now: Mapping[str, int], before: Mapping[str, int], copy: Copy) -> Iterator[Json]:
    for index, group in enumerate(copy.groups):
        if group in now and now[group] != before.get(group):
            path = f"/spec/workerGroupSpecs/{index}/replicas"
            yield {"op": "add", "path": path, "value": now[group]}


def _spec(original: Original) -> Json:
    """Return the spec without who manages it on the manager, nor its RayCluster.

    Whose an AppWrapper is, is the same on either side.
    """
    spec = parsed(original.spec)
    if original.kind in WRAPPER_RESOURCES:
        return spec
    inner = spec.get(SPEC_FIELDS.get(original.kind, ""))
    if isinstance(inner, dict):
        inner.pop("managedBy", None)
    assert spec.pop("managedBy", names.MANAGED_ELSEWHERE) == names.MANAGED_ELSEWHERE
    return spec


def _labels(original: Original) -> dict[str, str]:
    return {**original.metadata.labels, names.OPT_IN: "true"}


def _annotations(found: Labels) -> Iterator[tuple[str, str]]:
    for key, value in found.items():
        if key not in OF_THE_MANAGER:
            yield key, value

"""Reviews that the tests send: recorded ones, and changes to them.

The folder holds the reviews of kube-apiserver 1.36.3 for the pods of KubeRay 1.6.2, as they came
(with a webhook that asked for all pods, since ours is not sent the last three): the head of a
cluster with an autoscaler, a worker, the submitter of a RayJob, redis-cleanup, and a plain pod.
"""

from __future__ import annotations

import base64
import copy
from pathlib import Path
from typing import Any

import orjson

from kube.objects.names import GATE, OPT_IN
from webhook.owners import ClusterKey, Gone, Key, Marks, NamespaceKey

Json = dict[str, Any]

FOLDER = Path(__file__).parent / "reviews"
OWNER_UID = "b10795d3-b17e-49c8-872f-eb56a4f41edb"
CLUSTER = ClusterKey("demo", "raycluster-kuberay", OWNER_UID)
NAMESPACE = NamespaceKey("demo")
NOTHING = Marks({}, {})


def recorded(name: str) -> Json:
    """Return a review from the folder."""
    review: Json = orjson.loads((FOLDER / f"{name}.json").read_bytes())
    return review


def worker(**spec: object) -> Json:
    """Return the worker's review with these fields of the spec set."""
    review = recorded("worker")
    pod_of(review)["spec"].update(spec)
    return review


def pod_of(review: Json) -> Json:
    """Return the pod of a review, to be changed in place."""
    pod: Json = review["request"]["object"]
    return pod


def gates_after(review: Json, answered: Json) -> list[str]:
    """Name the gates of the pod after the answer."""
    pod = pod_after(review, answered)
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or []]


def pod_after(review: Json, answered: Json) -> Json:
    """Apply the patch of an answer as the API server does."""
    import jsonpatch  # noqa: PLC0415  (only an oracle: the webhook does not use it)

    pod: Json = copy.deepcopy(pod_of(review))
    patch = answered["response"].get("patch")
    if patch is not None:
        assert answered["response"]["patchType"] == "JSONPatch"
        pod = jsonpatch.apply_patch(pod, base64.b64decode(patch))
    return pod


class Known:
    """A lookup that knows what it is told: the cluster's and the namespace's marks."""

    def __init__(
        self, cluster: Marks | Gone | None, namespace: Marks | Gone | None = NOTHING
    ) -> None:
        self._known = {CLUSTER: cluster, NAMESPACE: namespace}

    def find(self, key: Key) -> Marks | Gone | None:
        return self._known.get(key)


def labelled(value: str = "true") -> Marks:
    """Return the marks of an object with the opt-in label."""
    return Marks({OPT_IN: value}, {})


def annotated(value: str = "true") -> Marks:
    """Return the marks of an object with the opt-in annotation."""
    return Marks({}, {OPT_IN: value})


OURS = {"name": GATE}

"""Makes volumes for the claims that kube-scheduler has given a node: a toy of a CSI driver.

It makes a volume for a claim that carries the annotation of the selected node, and binds both
sides, as the driver and the controller of volumes do together.
"""

import http
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.api import Api, Json, Session

PAUSE_SECONDS = 0.1
_SELECTED = "volume.kubernetes.io/selected-node"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
_MERGE = "application/merge-patch+json"
_VOLUMES = "/api/v1/persistentvolumes"
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_MADE = "made-by=testbed"


@contextmanager
def provisioning(api: Api) -> Iterator[None]:
    """Make volumes as long as the block lasts."""
    ended = threading.Event()
    thread = threading.Thread(target=_work, args=(api, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _work(api: Api, ended: threading.Event) -> None:
    with api.session() as session:
        while not ended.wait(PAUSE_SECONDS):
            claims = session.call("GET", "/api/v1/persistentvolumeclaims")["items"]
            for claim in claims:
                if _SELECTED in claim["metadata"].get("annotations", {}) and not _is_bound(claim):
                    _provide(claim, session)
            _clear({claim["metadata"]["uid"] for claim in claims}, session)


def _is_bound(claim: Json) -> bool:
    return bool(claim["spec"].get("volumeName"))


def _provide(claim: Json, session: Session) -> None:
    """Make a volume where its driver makes them; a claim that is gone by now is let be."""
    meta, spec = claim["metadata"], claim["spec"]
    name = f"made-{meta['uid']}"
    found, answer = session.request("GET", f"{_CLASSES}/{spec['storageClassName']}")
    if found != http.HTTPStatus.OK:
        return
    driver = json.loads(answer)["provisioner"]
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": dict([_MADE.split("=")])},
        "spec": {
            "accessModes": spec["accessModes"],
            "capacity": spec["resources"]["requests"],
            "storageClassName": spec["storageClassName"],
            "claimRef": {key: meta[key] for key in ("namespace", "name", "uid")},
            "csi": {"driver": driver, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": "Retain",
            **_reached_from(meta["annotations"][_SELECTED], driver, session),
        },
    }
    session.request("POST", _VOLUMES, json.dumps(volume).encode())
    bound = {"metadata": {"annotations": _BOUND}, "spec": {"volumeName": name}}
    path = f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims/{meta['name']}"
    session.request("PATCH", path, json.dumps(bound).encode(), _MERGE)


def _reached_from(node: str, driver: str, session: Session) -> Json:
    """Return the node affinity: where labels that the driver names are as on the node."""
    found, told = session.request("GET", f"/apis/storage.k8s.io/v1/csinodes/{node}")
    drivers = json.loads(told)["spec"]["drivers"] if found == http.HTTPStatus.OK else []
    keys = [
        key for each in drivers if each["name"] == driver for key in each.get("topologyKeys") or ()
    ]
    found, told = session.request("GET", f"/api/v1/nodes/{node}")
    if not keys or found != http.HTTPStatus.OK:  # no pod gets onto a node that is gone
        return {}
    labels = json.loads(told)["metadata"]["labels"]
    here = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": here}]}}}


def _clear(claims: set[str], session: Session) -> None:
    """Delete volumes without a claim."""
    made = session.call("GET", f"{_VOLUMES}?labelSelector={_MADE.replace('=', '%3D')}")["items"]
    for each in made:
        if each["spec"]["claimRef"]["uid"] not in claims:
            path = f"{_VOLUMES}/{each['metadata']['name']}"
            session.request("DELETE", path)
            free = json.dumps({"metadata": {"finalizers": None}}).encode()
            session.request("PATCH", path, free, _MERGE)

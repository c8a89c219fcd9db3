"""A toy of KubeRay's RayJob controller, in the states of its rayjob_controller.go (1.6.2).

It makes a RayCluster for each try, and deletes it where the RayJob is suspended or retried.
"""

from typing import Any

from kube.objects import names
from tests.coordinator.api import Api, Key, key_of
from tests.coordinator.builders import OPTED_IN, TEAM, Json, template

STOPPING = {"Suspending": "Suspended", "Retrying": ""}


def ray_job(name: str, cluster: Json, **spec: Any) -> Json:
    """A RayJob, opted in, that makes such a RayCluster; what else is given goes into its spec.

    Its submitter needs no room that a test counts unless the test says so.
    """
    made = {"rayClusterSpec": cluster["spec"], "submitterPodTemplate": template(cpu=0)}
    return {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayJob",
        "metadata": {
            "name": name,
            "namespace": TEAM,
            "labels": dict(cluster["metadata"]["labels"] or OPTED_IN),
            "annotations": dict(cluster["metadata"]["annotations"]),
        },
        "spec": {**made, **spec},
    }


def ray_service(name: str) -> Json:
    """A RayService, whose RayClusters a test makes itself."""
    meta = {"name": name, "namespace": TEAM}
    return {"apiVersion": names.RAY_API_VERSION, "kind": "RayService", "metadata": meta, "spec": {}}


def owned_by(owner: Json, cluster: Json) -> Json:
    """A RayCluster that a RayJob or RayService controls."""
    meta = owner["metadata"]
    reference = {
        "apiVersion": names.RAY_API_VERSION,
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    return {**cluster, "metadata": {**cluster["metadata"], "ownerReferences": [reference]}}


def reconcile(api: Api) -> None:
    """Bring every RayJob one step on."""
    for job in list(api.all("rayjobs")):
        if job["spec"].get("managedBy") != names.MANAGED_ELSEWHERE:
            _step(api, job)


def fail(api: Api, name: str) -> None:
    """End the try of a RayJob as a failed one: it is retried while its backoffLimit allows that."""
    job = api.get(Key("rayjobs", TEAM, name))
    failed = job["status"].get("failed", 0) + 1
    again = failed < (job["spec"].get("backoffLimit") or 0) + 1
    _say(api, job, jobDeploymentStatus="Retrying" if again else "Failed", failed=failed)


def _step(api: Api, job: Json) -> None:
    state, suspend = job["status"].get("jobDeploymentStatus", ""), job["spec"].get("suspend")
    if suspend and state in ("Initializing", "Running"):
        _say(api, job, jobDeploymentStatus="Suspending")
    elif state == "":
        api.tries += 1
        name = f"{job['metadata']['name']}-{api.tries}"
        _say(api, job, jobDeploymentStatus="Initializing", rayClusterName=name)
    elif state == "Initializing":
        _make(api, job)
    elif state in STOPPING:
        _stop(api, job, STOPPING[state])
    elif state == "Suspended" and not suspend:
        _say(api, job, jobDeploymentStatus="")


def _make(api: Api, job: Json) -> None:
    meta, name = job["metadata"], job["status"]["rayClusterName"]
    if Key("rayclusters", TEAM, name) in api.objects:
        return
    copied = {key: dict(meta[key]) for key in ("labels", "annotations")}
    cluster = {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": TEAM, **copied},
        "spec": job["spec"]["rayClusterSpec"],
    }
    api.create(owned_by(job, cluster))


def _stop(api: Api, job: Json, then: str) -> None:
    key = Key("rayclusters", TEAM, job["status"]["rayClusterName"])
    if key in api.objects:
        api.delete(key)
    else:
        _say(api, job, jobDeploymentStatus=then, rayClusterName="")


def _say(api: Api, job: Json, **status: object) -> None:
    api.change(job, lambda obj: obj["status"].update(status))


def job_of(api: Api, name: str) -> Json:
    """The RayJob as it is now."""
    return api.get(Key("rayjobs", TEAM, name))


def is_there(api: Api, obj: Json) -> bool:
    """Whether an object is there still."""
    return key_of(obj) in api.objects

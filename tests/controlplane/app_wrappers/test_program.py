"""The wrapper on a real API server: it creates and deletes what the Gang says, and nothing else.

Gangs are written by hand here, as the coordinator would.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kube.objects import names
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.muster import Muster, wait_app_wrappers_trusted
from testbed.waiting import wait_until

Json = dict[str, Any]

TENANT = "tenant"
WRAPPERS = f"/apis/{names.CODEFLARE_V1BETA2}"
GANGS = f"/apis/{names.API_VERSION}"


@pytest.fixture(scope="module")
def replicas(own: Muster) -> Iterator[Muster]:
    """Two replicas of the wrapper, and nothing that writes Gangs."""
    for _ in range(2):
        own.start_wrapper()
    wait_app_wrappers_trusted(own.cluster)
    yield own
    own.cluster.kubectl("delete", f"{names.APP_WRAPPERS}.workload.codeflare.dev", "--all", "-A")


class Place:
    """A namespace in which the tenant may do what an editor may."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        cluster.create_namespace(name)
        self.kubectl("create", "rolebinding", "edits", "--clusterrole=edit", f"--user={TENANT}")

    def kubectl(self, *args: str, body: Json | None = None) -> str:
        text = None if body is None else json.dumps(body)
        return self.cluster.kubectl("-n", self.name, *args, input=text)

    def create(self, wrapper: Json) -> None:
        """Have the tenant create an AppWrapper."""
        own = str(self.cluster.user_kubeconfig(TENANT))
        self.kubectl("--kubeconfig", own, "create", "-f", "-", body=wrapper)

    def creates(self, wrapper: Json) -> bool:
        """Try to create an AppWrapper as the tenant, whose rights may not have been heard of."""
        try:
            self.create(wrapper)
        except TestbedError:
            return False
        return True

    def status(self, name: str) -> Json:
        found = self.cluster.api.get(f"{WRAPPERS}/namespaces/{self.name}/appwrappers/{name}")
        return dict(found.get("status") or {})

    def wait_phase(self, name: str, phase: str) -> None:
        def reached() -> bool:
            return self.status(name).get("phase") == phase

        wait_until(reached, f"{name} to be {phase}", seen=lambda: self.status(name))

    def gang(self, name: str, held: str, *, placed: bool) -> None:
        """Write the Gang of an AppWrapper as the coordinator does."""
        path = f"{WRAPPERS}/namespaces/{self.name}/appwrappers/{name}"
        found = self.cluster.api.get(path)
        meta, counted = found["metadata"], found.get("status", {}).get("transitionCount", 0)
        said = {"phase": held, "generation": meta["generation"] + counted}
        gang = f"{names.APP_WRAPPER_GANG}{name}"
        owner = {
            "apiVersion": names.CODEFLARE_V1BETA2,
            "kind": names.APP_WRAPPER_KIND,
            "name": name,
            "uid": meta["uid"],
        }
        body = {
            "apiVersion": names.API_VERSION,
            "kind": "Gang",
            "metadata": {"name": gang, "ownerReferences": [owner]},
            "spec": {"rayClusterUid": meta["uid"]},
        }
        self.kubectl("apply", "-f", "-", body=body)
        placement = {"epoch": 1, "podSets": []} if placed else None
        status = {"status": {"held": said, "placement": placement, "reason": "Told"}}
        patch = ("patch", "gang", gang, "--subresource=status", "--type=merge")
        self.kubectl(*patch, "-p", json.dumps(status))

    def tells_anew(self) -> bool:
        """Tell whether an Event was written twice."""
        events = json.loads(self.kubectl("get", "events", "-o", "json"))["items"]
        ours = [each for each in events if each["reportingComponent"] == "muster.dev/wrapper"]
        return any(each["lastTimestamp"] != each["firstTimestamp"] for each in ours)

    def listed(self, kind: str) -> list[Json]:
        found = json.loads(self.kubectl("get", kind, "-o", "json"))["items"]
        return [each for each in found if names.APP_WRAPPER in each["metadata"].get("labels", {})]


def wrapper(name: str, *templates: Json) -> Json:
    return {
        "apiVersion": names.CODEFLARE_V1BETA2,
        "kind": names.APP_WRAPPER_KIND,
        "metadata": {"name": name},
        "spec": {"components": [{"template": each} for each in templates]},
    }


def config_map(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def deployment(replicas: int) -> Json:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def one_of_each(cluster: Cluster) -> list[Json]:
    """All kinds that may be wrapped as the manifests have it, as small as they can be."""
    web = deployment(1)
    ray = yaml.safe_load((cluster.samples / "ray-cluster.sample.yaml").read_text())["spec"]
    claimed = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    pod = {"spec": {**web["spec"]["template"]["spec"], "restartPolicy": "Never"}}
    kinds: list[tuple[str, str, Json]] = [
        ("v1", "Pod", pod),
        ("v1", "Service", {"spec": {"ports": [{"port": 80}]}}),
        ("v1", "ConfigMap", {}),
        ("v1", "Secret", {}),
        ("v1", "ServiceAccount", {}),
        ("v1", "PersistentVolumeClaim", {"spec": claimed}),
        ("apps/v1", "Deployment", {"spec": web["spec"]}),
        ("apps/v1", "ReplicaSet", {"spec": web["spec"]}),
        ("apps/v1", "StatefulSet", {"spec": {**web["spec"], "serviceName": "x"}}),
        ("batch/v1", "Job", {"spec": {"template": pod}}),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", {"spec": {"replicatedJobs": []}}),
        ("ray.io/v1", "RayCluster", {"spec": ray}),
        ("ray.io/v1", "RayJob", {"spec": {"entrypoint": "x", "rayClusterSpec": ray}}),
        ("ray.io/v1", "RayService", {"spec": {"rayClusterConfig": ray}}),
    ]
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": kind.lower()}, **rest}
        for version, kind, rest in kinds
    ]


def test_every_kind_that_is_granted_is_created_and_deleted(replicas: Muster) -> None:
    place = Place(replicas.cluster, "every-kind")
    more = ("rayclusters.ray.io", "rayjobs.ray.io", "rayservices.ray.io", "jobsets.jobset.x-k8s.io")
    asked = (f"--resource={each}" for each in more)
    place.kubectl("create", "role", "more", "--verb=create", *asked)
    place.kubectl("create", "rolebinding", "more", "--role=more", f"--user={TENANT}")
    every = one_of_each(replicas.cluster)
    wait_until(lambda: place.creates(wrapper("aw", *every)), "the tenant to have its rights")
    place.wait_phase("aw", "Suspended")
    place.gang("aw", "Waiting", placed=True)
    kinds = ",".join([*more, "pods,services,configmaps,secrets,serviceaccounts,deployments",
                      "persistentvolumeclaims,replicasets,statefulsets,jobs"])  # fmt: skip
    own = {each["metadata"]["name"] for each in every}

    def there() -> set[str]:
        return {each["metadata"]["name"] for each in place.listed(kinds)} & own

    wait_until(lambda: there() == own, "one of each kind", seen=lambda: place.status("aw"))
    place.gang("aw", "Suspending", placed=False)
    place.wait_phase("aw", "Suspended")
    assert place.listed(kinds) == []


def test_items_come_with_the_placement_and_go_with_it(replicas: Muster) -> None:
    place = Place(replicas.cluster, "comes-and-goes")
    place.create(wrapper("aw", config_map("settings"), deployment(2)))
    place.wait_phase("aw", "Suspended")
    place.gang("aw", "Waiting", placed=False)
    assert place.listed("configmaps,deployments,pods") == []

    place.gang("aw", "Waiting", placed=True)
    place.wait_phase("aw", "Running")
    wait_until(lambda: len(place.listed("pods")) == 2, "both pods")
    for pod in place.listed("pods"):
        assert pod["spec"]["schedulingGates"] == [{"name": names.GATE}]

    place.gang("aw", "Suspending", placed=False)
    place.wait_phase("aw", "Suspended")
    assert place.listed("configmaps,deployments,replicasets,pods") == []

    place.gang("aw", "Waiting", placed=True)
    place.wait_phase("aw", "Running")
    wait_until(place.tells_anew, "the Event of the start to be renewed, seconds after the first")
    place.kubectl("delete", f"{names.APP_WRAPPERS}.workload.codeflare.dev", "aw", "--wait=false")
    left = "configmaps,deployments,replicasets,pods"
    wait_until(lambda: place.listed(left) == [], "all to be gone with the AppWrapper")


@pytest.mark.variant
def test_what_the_creator_may_not_do_any_more_is_taken_back(replicas: Muster) -> None:
    place = Place(replicas.cluster, "rights-lost")
    place.create(wrapper("aw", config_map("settings"), deployment(1)))
    place.wait_phase("aw", "Suspended")
    place.kubectl("delete", "rolebinding", "edits")
    config_maps = ("create", "role", "some", "--verb=create", "--resource=configmaps")
    place.kubectl(*config_maps)
    place.kubectl("create", "rolebinding", "some", "--role=some", f"--user={TENANT}")
    place.gang("aw", "Waiting", placed=True)
    place.wait_phase("aw", "Failed")
    said = f"user {TENANT}, the creator, may not create deployments.apps"
    assert said in place.status("aw")["message"]
    wait_until(lambda: place.listed("configmaps,deployments") == [], "the ConfigMap to be gone")


@pytest.mark.variant
def test_a_leader_that_is_killed_while_it_creates_is_followed_by_the_other(
    replicas: Muster,
) -> None:
    place = Place(replicas.cluster, "killed")
    many = [config_map(f"settings-{number:03}") for number in range(300)]
    place.create(wrapper("aw", *many))
    place.wait_phase("aw", "Suspended")
    place.gang("aw", "Waiting", placed=True)
    place.wait_phase("aw", "Resuming")
    leads = replicas.cluster.api.get(
        "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases/muster-wrapper"
    )["spec"]["holderIdentity"]
    (leader,) = (each for each in replicas.wrappers if each.name == leads)
    leader.kill()
    assert place.status("aw")["phase"] == "Resuming"
    place.wait_phase("aw", "Running")
    assert len(place.listed("configmaps")) == 300

"""What a tenant may try against Muster, on the real API server: what refuses it, or what it costs.

All of it happens in a namespace of the tenant, beside one of others. The table is in
docs/security.md.
"""

from __future__ import annotations

import contextlib
import http
import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from kube.objects import names
from testbed.api import Api
from testbed.errors import TestbedError
from testbed.muster import BASE, Muster
from testbed.policies import POLICY_RESOURCES
from testbed.waiting import wait_until
from tests.controlplane.attacks import (
    COORDINATOR,
    MERGE,
    OWNER,
    QUEUES,
    REQUESTS,
    TENANT,
    Names,
    Request,
)
from tests.controlplane.plot import Plot, gates, is_held, is_ready, plotted
from tests.controlplane.rayclusters import GANG, Json, gang, group, head, pod, ray_cluster, requests

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_NODE_NAME = BASE.parent / "node-name" / "policy.yaml"
_WRAPPED = BASE.parent / "app-wrapper" / "policies.yaml"
_NUMBERS = itertools.count(1)
TINY = requests(cpu="10m", memory="16Mi")
MORE_THAN_THERE_IS = requests(cpu="8")


class Scene:
    """A tenant's namespace with gangs that run and wait, and one of others."""

    def __init__(self, own: Plot, others: Plot) -> None:
        self.own, self.others, self.cluster = own, others, own.cluster

    def fill(self) -> None:
        """Set it up: there is no room for the gang that waits, and a little for small pods."""
        self.own.add_node(5)
        self.others.add_node(3)
        self.others.add_queue("theirs", quota={"cpu": "3"})
        self.others.create(gang("theirs", group(replicas=1)))
        self.own.create(gang("runs", group(replicas=1)))
        self.own.create(pod("plain"))
        self.own.wait_running("runs", 2)
        self.own.wait(lambda: is_ready(self.own.get("Pod", "plain")), "the plain pod to run")
        self.own.create(gang("waits", group(replicas=3)))
        self.own.wait_phase("waits", "Queued", "InsufficientResources")
        self.others.wait_running("theirs", 2)
        self.own.create(owned_by(self.own.get("RayCluster", "waits"), pod("owned", **tiny())))

    def names(self) -> Names:
        """What requests are about."""
        waits = self.own.get("RayCluster", "waits")
        return {
            "own": self.own.name,
            "others": self.others.name,
            "node": self.own.node("node"),
            "queue": self.others.queue("theirs"),
            "uid": waits["metadata"]["uid"],
            "plain": "plain",
            "owned": "owned",
            "gated": self.own.pods("waits", "worker")[0]["metadata"]["name"],
            "released": self.own.pods("runs", "worker")[0]["metadata"]["name"],
            "victim": self.others.pods("theirs", "worker")[0]["metadata"]["name"],
        }

    def user(self, name: str = TENANT) -> Api:
        """The API server as the tenant sees it."""
        return self.cluster.user_api(name)

    def sent(self, request: Request) -> tuple[int, str]:
        """Send a request as a dry run: status and message of the answer."""
        named = self.names()
        user = replace(self.user(request.user), impersonated=request.impersonated.format(**named))
        dry = "" if request.method == "GET" else "?dryRun=All"
        content = request.content(named)
        with user.session() as session:
            status, answer = session.request(
                request.method,
                request.path.format(**named) + dry,
                None if content is None else json.dumps(content).encode(),
                request.content_type if request.method == "PATCH" else "application/json",
            )
        return status, str(json.loads(answer).get("message", ""))

    def merged(self, kind: str, name: str, change: Json) -> Json:
        """Have the tenant change an object of its namespace."""
        with self.user().session() as session:
            body = json.dumps(change).encode()
            return session.call("PATCH", self.own.path(kind, name), body, MERGE)

    def created(self, manifest: Json) -> Json:
        """Have the tenant create an object in its namespace, its pods held to the plot's nodes."""
        return self.own.create_as(self.user(), manifest)

    def annotated(self, name: str, **annotations: str) -> None:
        """Have the tenant annotate a RayCluster."""
        marks = {f"{names.GROUP}/{key}": said for key, said in annotations.items()}
        self.merged("RayCluster", name, {"metadata": {"annotations": marks}})

    def wait_heard(self) -> None:
        """Wait until the coordinator has heard of what came before: a gang that fits runs."""
        name = f"heard-{next(_NUMBERS)}"
        self.created(gang(name, head_group=head(TINY)))
        self.own.wait_running(name, 1)

    def untouched(self) -> None:
        """Check that the gang that waits still does, and that the others' runs as it did."""
        status = self.own.status("waits")
        assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
        pods = [*self.own.pods("waits", "head"), *self.own.pods("waits", "worker")]
        assert [is_held(each) for each in pods] == [True] * 4
        assert [each.get("released", 0) for each in status["podSets"]] == [0, 0]
        assert [each.get("notReleased", 0) for each in status["podSets"]] == [0, 0]
        theirs = self.others.status("theirs")
        assert (theirs["phase"], theirs["ready"]) == ("Running", "2/2")


def tiny() -> Json:
    """The spec of a pod for which there is room."""
    return {"containers": [{"name": "main", "image": "none", "resources": TINY}]}


def owned_by(cluster: Json, made: Json) -> Json:
    """The pod with a RayCluster for its controller."""
    owner = {"apiVersion": names.RAY_API_VERSION, "kind": "RayCluster", "controller": True}
    meta = cluster["metadata"]
    made["metadata"]["ownerReferences"] = [{**owner, "name": meta["name"], "uid": meta["uid"]}]
    return made


def pinned(node: str) -> Json:
    """The affinity of a pod that Muster released to a node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.fixture(scope="module")
def scene(muster: Muster) -> Iterator[Scene]:
    """One scene for all attacks."""
    cluster = muster.cluster
    cluster.kubectl("apply", "--server-side", "-f", str(BASE / "view-rbac.yaml"))
    with plotted(cluster, "attackers") as own, plotted(cluster, "attacked") as others:
        grant(own)
        scene = Scene(own, others)
        scene.fill()
        with queues_granted(cluster.api):
            yield scene


@contextlib.contextmanager
def queues_granted(api: Api) -> Iterator[None]:
    """Let one user write GangQueues, and their status."""
    rule = {"apiGroups": [names.GROUP], "resources": ["gangqueues", "gangqueues/status"]}
    body = {"metadata": {"name": QUEUES}, "rules": [{**rule, "verbs": ["get", "patch"]}]}
    group = "rbac.authorization.k8s.io"
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": QUEUES}
    bound = {"subjects": [{"kind": "User", "name": QUEUES}], "roleRef": reference}
    api.create(f"{_RBAC}/clusterroles", body)
    api.create(f"{_RBAC}/clusterrolebindings", {"metadata": {"name": QUEUES}, **bound})
    yield
    with api.session() as session:
        for kind in ("clusterrolebindings", "clusterroles"):
            session.call("DELETE", f"{_RBAC}/{kind}/{QUEUES}")


def grant(plot: Plot) -> None:
    """Give the users their rights in the plot, and wait until they have them."""
    api = plot.cluster.api
    kinds = ["rayclusters", "rayjobs", "rayservices"]
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    rule = {"apiGroups": ["ray.io"], "resources": kinds, "verbs": verbs}
    here = f"{_RBAC}/namespaces/{plot.name}"
    api.create(f"{here}/roles", {"metadata": {"name": "ray"}, "rules": [rule]})
    users = [{"kind": "User", "name": TENANT}]
    helper = {"kind": "ServiceAccount", "name": "helper", "namespace": plot.name}
    bind(plot, "ClusterRole", "edit", *users, helper)
    bind(plot, "Role", "ray", *users)
    bind(plot, "ClusterRole", "cluster-admin", {"kind": "User", "name": OWNER})
    gangs = f"/apis/{names.API_VERSION}/namespaces/{plot.name}/gangs"
    tenant, owner = plot.cluster.user_api(TENANT), plot.cluster.user_api(OWNER)
    wait_until(lambda: tenant.exists(gangs), "tenants to see Gangs")
    wait_until(lambda: tenant.exists(plot.path("RayCluster")), "tenants to see RayClusters")
    wait_until(lambda: owner.exists(gangs), "the admin of the namespace to see Gangs")


def bind(plot: Plot, kind: str, role: str, *subjects: Json) -> None:
    """Bind a role in the plot alone."""
    group = "rbac.authorization.k8s.io"
    reference = {"apiGroup": group, "kind": kind, "name": role}
    body = {"metadata": {"name": role}, "subjects": list(subjects), "roleRef": reference}
    plot.cluster.api.create(f"{_RBAC}/namespaces/{plot.name}/rolebindings", body)


# ---- what is refused


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_refused(scene: Scene, name: str) -> None:
    asked = REQUESTS[name]
    status, message = scene.sent(asked)
    assert status in (
        http.HTTPStatus.FORBIDDEN,
        http.HTTPStatus.UNPROCESSABLE_ENTITY,
        http.HTTPStatus.CONFLICT,
    ), message
    assert asked.refused_by in message
    assert asked.says in message


def test_refusals_say_what_is_allowed(scene: Scene) -> None:
    by_policy = [each for each in REQUESTS.values() if "AdmissionPolicy" in each.refused_by]
    assert len(by_policy) >= 10
    for asked in by_policy:
        _, message = scene.sent(asked)
        assert "; allowed: " in message
        assert "user " in message


def test_what_tenants_write_on_ray_objects_is_taken(scene: Scene) -> None:
    """All documented keys, and reading what Muster says."""
    scene.created(gang("theirs-too", head_group=head(MORE_THAN_THERE_IS)))
    scene.annotated("theirs-too", **{"expected-duration": "1h", "retry": "1"})
    scene.merged("RayCluster", "theirs-too", {"metadata": {"labels": {names.OPT_IN: "false"}}})
    assert scene.user().get(scene.own.path("Gang", "waits"))["status"]["phase"] == "Queued"


def test_the_garbage_collector_may_write_what_a_gang_says_of_its_owners(scene: Scene) -> None:
    """As it does where a RayCluster is deleted without what it owns."""
    orphaned: Json = {"metadata": {"ownerReferences": None}}
    asked = replace(REQUESTS["gang-spec-written"], body=orphaned, user=OWNER)
    assert scene.sent(asked)[0] == http.HTTPStatus.OK


@pytest.mark.parametrize("name", ["gate-taken-off", "fence-forged", "gang-status-written"])
def test_what_may_release_gangs_may_do_what_is_refused_to_tenants(scene: Scene, name: str) -> None:
    """An administrator of the cluster in an emergency: RBAC says so, and no name."""
    admin = scene.cluster.api
    asked = replace(REQUESTS[name], user=TENANT)
    named = scene.names()
    with admin.session() as session:
        body = json.dumps(asked.content(named)).encode()
        path = asked.path.format(**named) + "?dryRun=All"
        status, answer = session.request("PATCH", path, body, asked.content_type)
    assert status == http.HTTPStatus.OK, answer


# ---- what is taken, and costs its author alone


def forged_labels(scene: Scene) -> None:
    """Labels of a pod of others' gang, with opt-in and gang."""
    forged = {
        names.RAY_NODE_TYPE: "worker",
        names.RAY_CLUSTER: "theirs",
        names.RAY_GROUP: "workers",
    }
    made = scene.created(pod("labelled", labels={**forged, **GANG}, **tiny()))
    assert gates(made) == []


def owner_in_another_namespace(scene: Scene) -> None:
    """A controller of another namespace is none."""
    theirs = scene.others.get("RayCluster", "theirs")
    made = owned_by(theirs, pod("foreign", labels={names.RAY_NODE_TYPE: "worker"}, **tiny()))
    with pytest.raises(TestbedError, match="is gone; allowed: a pod of one that exists"):
        scene.created(made)


def pod_beside_the_webhook(scene: Scene) -> None:
    """Owner and pin as of a released pod, but without the label by which the webhook is asked."""
    waits, node = scene.own.get("RayCluster", "waits"), scene.own.node("node")
    labels = {names.RAY_GROUP: "workers"}
    made = scene.created(
        owned_by(waits, pod("beside", labels=labels, affinity=pinned(node), **tiny()))
    )
    assert gates(made) == []


def pod_of_the_gang(scene: Scene) -> None:
    """Owner, pin and label: the webhook gates it, and it is one too many."""
    waits, node = scene.own.get("RayCluster", "waits"), scene.own.node("node")
    labels = {names.RAY_NODE_TYPE: "worker"}
    made = scene.created(
        owned_by(waits, pod("counted", labels=labels, affinity=pinned(node), **tiny()))
    )
    assert gates(made) == [names.GATE]
    scene.own.delete("Pod", "counted")


def own_pin_in_a_template(scene: Scene) -> None:
    """A pin as of a release, of a RayCluster that becomes a gang while its pod is pending.

    It would be taken for what an earlier leader released, and keep the node's room unasked.
    """
    made = head(MORE_THAN_THERE_IS, affinity=pinned(scene.own.node("node")))
    made["template"]["metadata"] = {"annotations": {names.RELEASED: "guessed"}}
    scene.created(ray_cluster("pinned", head_group=made))
    scene.own.wait_unschedulable("pinned")
    scene.merged("RayCluster", "pinned", {"metadata": {"labels": GANG}})
    scene.own.wait(lambda: "pinned" in scene.own.gangs(), "its Gang")
    scene.wait_heard()
    assert "placement" not in scene.own.status("pinned")
    scene.own.delete("RayCluster", "pinned")


def gate_without_a_gang(scene: Scene) -> None:
    """It waits until its author deletes it, and is told so; also one with the labels of a gang."""
    gate = [{"name": names.GATE}]
    ray = {names.RAY_NODE_TYPE: "worker", names.RAY_CLUSTER: "forged", names.RAY_GROUP: "workers"}
    made = {"stuck": pod("stuck", schedulingGates=gate, **tiny())}
    made["stuck-as-ray"] = pod("stuck-as-ray", labels=ray, schedulingGates=gate, **tiny())
    for each in made.values():
        assert gates(scene.created(each)) == [names.GATE]
    for name in made:
        scene.own.wait_event(name, "NoGang", "no RayCluster made it", kind="Pod")
        with scene.user().session() as session:
            session.call("DELETE", scene.own.path("Pod", name))


def queue_of_others(scene: Scene) -> None:
    """A queue that does not select the namespace."""
    labels = {names.QUEUE: scene.others.queue("theirs")}
    scene.created(gang("strays", labels=labels, head_group=head(TINY)))
    scene.own.wait_phase("strays", "Gathering", "Misconfigured", scene.others.queue("theirs"))


def priority_of_the_system(scene: Scene) -> None:
    """A class above its pods that the operator has not allowed."""
    labels = {names.PRIORITY_CLASS: "system-cluster-critical"}
    scene.created(gang("first", labels=labels, head_group=head(TINY)))
    scene.own.wait_phase("first", "Gathering", "Misconfigured", "system-cluster-critical")


def scheduler_of_its_own(scene: Scene) -> None:
    """Nothing is promised for a scheduler that is not known."""
    scene.created(gang("elsewhere", head_group=head(TINY, schedulerName="mine")))
    scene.own.wait_phase("elsewhere", "Queued", "Unsupported", "mine")


def endless_annotation(scene: Scene) -> None:
    """A value longer than any use has."""
    said = {names.MIN_REPLICAS: "workers=1," * 10_000}
    scene.created(gang("endless", annotations=said, head_group=head(TINY)))
    scene.own.wait_phase("endless", "Gathering", "Misconfigured", names.MIN_REPLICAS)


def pod_with_thousands_of_keys(scene: Scene) -> None:
    """The policies judge it as any other: what they cost does not grow with it."""
    annotations = {f"a.example.com/{number}": "x" for number in range(8_000)}
    labels = {f"l.example.com/{number}": "x" for number in range(20_000)}
    made = pod("laden", schedulingGates=[{"name": names.GATE}], **tiny())
    made["metadata"] |= {"annotations": annotations, "labels": labels}
    scene.created(made)
    status, message = scene.sent(
        replace(REQUESTS["gate-taken-off"], path="/api/v1/namespaces/{own}/pods/laden")
    )
    assert (status, "may not take the gate" in message) == (http.HTTPStatus.FORBIDDEN, True), (
        message
    )
    assert scene.merged("Pod", "laden", {"metadata": {"labels": {"more": "x"}}})
    scene.own.delete("Pod", "laden")


def reserved_keys_in_a_template(scene: Scene) -> None:
    """They come with the pods, and say nothing to the coordinator."""
    noted = head(TINY)
    noted["template"]["metadata"] = {"annotations": {names.FENCE: "1.0", names.TOLD: "me"}}
    scene.created(gang("noted", head_group=noted))
    scene.own.wait_running("noted", 1)


def notes_on_a_ray_cluster(scene: Scene) -> None:
    """Muster's notes on the tenant's own RayCluster: it is not suspended for them, nor waked."""
    scene.annotated("runs", held="true", woken="2026-01-01T00:00:00Z")
    scene.wait_heard()
    assert not scene.own.get("RayCluster", "runs")["spec"].get("suspend")
    assert scene.own.status("runs")["phase"] == "Running"


def held_gang_resumed(scene: Scene) -> None:
    """Its pods are made, and gated."""
    said = {names.CREATE_PODS: names.CREATE_WHEN_ADMITTED}
    scene.created(gang("held", annotations=said, head_group=head(MORE_THAN_THERE_IS)))
    scene.own.wait_phase("held", "Queued", "NeverFits")
    assert scene.own.pods("held") == []
    scene.merged("RayCluster", "held", {"spec": {"suspend": False}})
    assert all(is_held(each) for each in scene.own.wait_pods("held", 1))


def pods_narrowed_after_gating(scene: Scene) -> None:
    """A gated pod may be narrowed: its gang is decided by what it asks for now."""
    scene.created(gang("narrow", head_group=head(MORE_THAN_THERE_IS)))
    (found,) = scene.own.wait_pods("narrow", 1)
    scene.own.wait_phase("narrow", "Queued", "NeverFits")
    scene.merged("Pod", found["metadata"]["name"], {"spec": {"nodeSelector": {"zone": "none"}}})
    scene.own.wait_phase("narrow", "Queued", "NoFeasibleNode")


def gang_opted_out(scene: Scene) -> None:
    """Its pods are plain ones then, unpinned: no gang, no queue and no reserved room."""
    scene.created(gang("leaves", head_group=head(MORE_THAN_THERE_IS)))
    scene.own.wait_phase("leaves", "Queued", "NeverFits")
    scene.merged("RayCluster", "leaves", {"metadata": {"labels": {names.OPT_IN: "false"}}})
    scene.own.wait_unschedulable("leaves")
    scene.own.wait_no_gang("leaves")


def pods_kept_without_their_ray_cluster(scene: Scene) -> None:
    """Deleted with `--cascade=orphan`, it leaves its released pods, which count as before."""
    with plotted(scene.cluster, "orphans") as plot:
        grant(plot)
        plot.add_node(5)
        plot.add_queue("mine", quota={"cpu": "2"})
        plot.create_as(scene.user(), gang("kept", group(replicas=1)))
        plot.wait_running("kept", 2)
        with scene.user().session() as session:
            path = f"{plot.path('RayCluster', 'kept')}?propagationPolicy=Orphan"
            session.call("DELETE", path)
        kept = plot.pods("kept")
        plot.wait(lambda: not any(map(owners, plot.pods("kept"))), "the pods to have no owner")
        plot.wait_no_gang("kept")
        plot.create_as(scene.user(), gang("next", head_group=head(TINY)))
        told = f"queue {plot.queue('mine')} uses 2 of its quota of 2 cpu"
        plot.wait_phase("next", "Queued", "QuotaExceeded", told)
        assert len(kept) == len([each for each in plot.pods("kept") if is_ready(each)]) == 2
        for each in kept:
            plot.delete("Pod", each["metadata"]["name"])
        plot.wait_running("next", 1)


def owners(found: Json) -> list[Json]:
    """The objects that an object goes with."""
    return found["metadata"].get("ownerReferences") or []


def metadata_by_other_subresources(scene: Scene) -> None:
    """The API server takes nothing but resources, or containers, from them."""
    pods = {"resize": "gated", "ephemeralcontainers": "released"}  # kwok's nodes resize none
    noted = {names.RELEASED: "9.9", names.FENCE: "9.9"}
    wanted = {"labels": {names.RAY_NODE_TYPE: None}, "annotations": noted, "ownerReferences": None}
    body = json.dumps({"metadata": wanted}).encode()
    kept = ("labels", "annotations", "ownerReferences")
    for subresource, which in pods.items():
        name = scene.names()[which]
        before = scene.own.get("Pod", name)["metadata"]
        path = f"{scene.own.path('Pod', name)}/{subresource}?dryRun=All"
        with scene.user(OWNER).session() as session:
            answer = session.call("PATCH", path, body, MERGE)
        assert [answer["metadata"].get(key) for key in kept] == [before.get(key) for key in kept]


def event_forged(scene: Scene) -> None:
    """Events are written by Muster, and never read."""
    about = {"kind": "RayCluster", "name": "waits", "namespace": scene.own.name}
    content = {"metadata": {"name": "forged"}, "involvedObject": about, "reason": "Admitted"}
    scene.user().create(f"/api/v1/namespaces/{scene.own.name}/events", content)


def lease_of_its_own(scene: Scene) -> None:
    """Only the Leases of Muster's namespace and of kube-system count."""
    content = {"metadata": {"name": names.LEASE_NAME}, "spec": {"holderIdentity": "me"}}
    path = f"/apis/coordination.k8s.io/v1/namespaces/{scene.own.name}/leases"
    scene.user().create(path, content)


COSTS: dict[str, Callable[[Scene], None]] = {
    "labels-of-another-gang": forged_labels,
    "owner-in-another-namespace": owner_in_another_namespace,
    "pod-beside-the-webhook": pod_beside_the_webhook,
    "pod-of-the-gang": pod_of_the_gang,
    "own-pin-in-a-template": own_pin_in_a_template,
    "gate-without-a-gang": gate_without_a_gang,
    "queue-of-others": queue_of_others,
    "priority-of-the-system": priority_of_the_system,
    "scheduler-of-its-own": scheduler_of_its_own,
    "endless-annotation": endless_annotation,
    "pod-with-thousands-of-keys": pod_with_thousands_of_keys,
    "reserved-keys-in-a-template": reserved_keys_in_a_template,
    "notes-on-a-ray-cluster": notes_on_a_ray_cluster,
    "held-gang-resumed": held_gang_resumed,
    "pods-narrowed-after-gating": pods_narrowed_after_gating,
    "gang-opted-out": gang_opted_out,
    "pods-kept-without-their-ray-cluster": pods_kept_without_their_ray_cluster,
    "metadata-by-other-subresources": metadata_by_other_subresources,
    "event-forged": event_forged,
    "lease-of-its-own": lease_of_its_own,
}


@pytest.mark.parametrize("name", COSTS)
def test_it_costs_its_author_alone(scene: Scene, name: str) -> None:
    COSTS[name](scene)


def test_nothing_of_it_released_a_pod_or_touched_others(scene: Scene) -> None:
    scene.wait_heard()
    scene.untouched()


# ---- the policies of components


@contextlib.contextmanager
def in_force(plot: Plot, policies: Path) -> Iterator[None]:
    """A component's policies, bound to the plot alone: other tests do what they refuse."""
    here = {"matchLabels": {"kubernetes.io/metadata.name": plot.name}}
    paths = []
    for found in yaml.safe_load_all(policies.read_text()):
        if found["kind"] == "ValidatingAdmissionPolicyBinding":
            found["spec"]["matchResources"] = {"namespaceSelector": here}
        paths.append(f"{POLICY_RESOURCES[found['kind']]}/{found['metadata']['name']}")
        plot.cluster.api.apply(paths[-1], json.dumps(found).encode())
    try:
        yield
    finally:
        with plot.cluster.api.session() as session:
            for path in paths:
                session.call("DELETE", path)


def taken(scene: Scene, made: Json, user: Api | None = None) -> tuple[int, str]:
    """Whether a pod with the name of a node would be created: status and message."""
    made["spec"]["nodeName"] = scene.own.node("node")
    path = f"{scene.own.path('Pod')}?dryRun=All"
    with (user or scene.user()).session() as session:
        status, answer = session.request("POST", path, json.dumps(made).encode())
    return status, str(json.loads(answer).get("message", ""))


def test_pods_with_devices_or_of_ray_name_no_node_where_that_is_refused(scene: Scene) -> None:
    device = [{"name": "c", "image": "none", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]
    with in_force(scene.own, _NODE_NAME):
        refused = wait_until(
            lambda: [
                said for code, said in [taken(scene, pod("p", containers=device))] if code == 403
            ],
            "the policy to be in force",
        )
        assert f"spec.nodeName: {scene.own.node('node')}" in refused[0]
        assert "; allowed: a required node affinity" in refused[0]
        assert taken(scene, pod("p", labels={names.RAY_NODE_TYPE: "worker"}))[0] == 403
        assert taken(scene, pod("p", containers=device), scene.user(OWNER))[0] == 403
        assert taken(scene, pod("p"))[0] == 201
        assert taken(scene, pod("p", containers=device), scene.cluster.api)[0] == 201


def test_which_app_wrapper_a_pod_is_of_is_written_in_no_way_but_with_the_pod(scene: Scene) -> None:
    ours = {names.APP_WRAPPER: "mine", names.APP_WRAPPER_UID: "some", names.POD_SET: "workers"}
    scene.created(pod("wrapped", labels=ours, **tiny()))
    path = "/api/v1/namespaces/{own}/pods/wrapped"
    change = {"metadata": {"labels": {names.APP_WRAPPER_UID: "other"}}}
    bound = {"metadata": {"name": "wrapped", **change["metadata"]}, "target": {"name": "any"}}
    refused = {
        "may not change the labels": [
            Request("PATCH", path, "", body=change),
            Request("PATCH", path + "/status", "", body=change, user=OWNER),
        ],
        "may not write by a binding which AppWrapper": [
            Request("POST", path + "/binding", "", body=bound, user=OWNER),
            Request("POST", "/api/v1/namespaces/{own}/bindings", "", body=bound, user=OWNER),
        ],
    }
    with in_force(scene.own, _WRAPPED):
        for said, asked in [(said, each) for said, all_ in refused.items() for each in all_]:
            wait_until(
                lambda said=said, asked=asked: said in scene.sent(asked)[1],  # type: ignore[misc]
                f"{asked.path} by {asked.user} to be refused",
            )
        other = {"metadata": {"labels": {"of-mine": "x"}}}
        assert scene.sent(Request("PATCH", path, "", body=other))[0] == http.HTTPStatus.OK
    scene.own.delete("Pod", "wrapped")


def test_the_coordinator_is_what_may_release_gangs(scene: Scene) -> None:
    """In the whole cluster; and no other account of Muster, nor one that owns a namespace."""
    here = {"group": names.GROUP, "resource": "gangs", "verb": "release"}
    subjects = {
        COORDINATOR: True,
        COORDINATOR.replace("coordinator", "webhook"): False,
        OWNER: False,
    }
    for user, allowed in subjects.items():
        review = {"spec": {"user": user, "resourceAttributes": here}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        assert scene.cluster.api.create(path, review)["status"]["allowed"] is allowed, user


def test_a_plain_pod_of_ray_runs_beside_it_all(scene: Scene) -> None:
    scene.created(ray_cluster("ungated", head_group=head(TINY)))
    scene.own.wait_ready("ungated", 1)

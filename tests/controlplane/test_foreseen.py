"""The pods that Muster works out of a RayCluster are those that KubeRay makes and the API admits.

Judged on all of KubeRay's own samples, which lie beside its operator once the testbed has built it,
in a namespace whose LimitRange, PriorityClass and RuntimeClass change the pods.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
import yaml

from kube.codec.observed_pod import ObservedPod, observe
from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen, Outlook, foreseen_gang, observed_pods
from kube.foreseen.namespace_quota import QuotaShortage, namespace_quota
from kube.objects import names
from kube.objects.admission import LimitRange, ResourceQuota, RuntimeClass
from kube.objects.core import Pod, PriorityClass
from kube.objects.ray import RayCluster
from kube.ray.ray_cluster import essential
from scheduling.model.quantity import request_amount
from testbed.cluster import Cluster
from testbed.muster import Muster, start_muster, with_muster
from testbed.options import Options
from testbed.recipes import DEFAULT_KUBERAY, KUBERAY
from testbed.waiting import wait_until
from tests.controlplane.plot import PRIORITY_CLASSES, Plot, label, plotted
from tests.controlplane.rayclusters import GANG, Json, gang

RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
RUNTIME = "foreseen-sandbox"
MOST = 2  # replicas of a group, and hosts of a replica: more of the same prove no more
NUMBERED = (
    names.RAY_REPLICA_NAME,
    "ray.io/worker-group-replica-index",
    "ray.io/replica-host-index",
)

LIMITS = {
    "defaultRequest": {"cpu": "333m", "memory": "77Mi", "ephemeral-storage": "1Gi"},
    "max": {"ephemeral-storage": "900Gi"},
    "min": {"cpu": "1m"},
}
SANDBOX = {
    "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
    "scheduling": {
        "nodeSelector": {"sandbox": "yes"},
        "tolerations": [{"key": "sandbox", "operator": "Exists"}],
    },
}
_SMALL = {"name": "small", "image": "none", "resources": {"requests": {"cpu": "0"}}}
TOO_SMALL = {"metadata": {"name": "small"}, "spec": {"containers": [_SMALL]}}
SIDES = ("", "requests.", "limits.")
COMPUTE = ("pods", *(f"{side}{name}" for side in SIDES for name in ("cpu", "memory")))
OTHERS = (  # no scope goes with these
    *(f"{side}ephemeral-storage" for side in SIDES),
    *("count/pods", "requests.nvidia.com/gpu", "requests.google.com/tpu"),
)
SCOPES: dict[str, Json] = {
    "all": {},
    "terminating": {"scopes": ["Terminating"]},
    "not-terminating": {"scopes": ["NotTerminating"]},
    "best-effort": {"scopes": ["BestEffort"]},
    "not-best-effort": {"scopes": ["NotBestEffort"]},
    "any-class": {"scopes": ["PriorityClass"]},
    "no-such-class": {
        "scopeSelector": {
            "matchExpressions": [
                {"scopeName": "PriorityClass", "operator": "In", "values": ["other"]}
            ]
        }
    },
}
T = TypeVar("T")


def awkward() -> Json:
    """A gang with what samples do not have: a deadline, side-cars, label keys, host ports."""
    own = {names.RAY_GROUP: "odd", "team": "a"}
    terms = [{"topologyKey": "rack", "labelSelector": {}, "matchLabelKeys": ["team"]}]
    nearest = [{**terms[0], "mismatchLabelKeys": [names.RAY_CLUSTER], "matchLabelKeys": []}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    odd = {
        "hostNetwork": True,
        "activeDeadlineSeconds": 3600,
        "runtimeClassName": RUNTIME,
        "tolerations": [
            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
            {"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"},
        ],
        "affinity": {"podAffinity": {required: nearest}, "podAntiAffinity": {required: terms}},
        "topologySpreadConstraints": [
            {**spread, "labelSelector": {"matchLabels": {"app": "x"}}, "matchLabelKeys": ["team"]}
        ],
        "containers": [{"name": "ray", "image": "ray", "resources": {"limits": {"cpu": "1500m"}}}],
        "initContainers": [
            {
                "name": "side",
                "image": "none",
                "restartPolicy": "Always",
                "resources": {"limits": {"memory": "3Gi"}, "requests": {"cpu": "1.2345"}},
            },
            {"name": "first", "image": "none", "resources": {"requests": {"cpu": "9"}}},
        ],
    }
    group = {"groupName": "odd", "replicas": 2, "minReplicas": 0, "maxReplicas": 2}
    template = {"metadata": {"labels": own}, "spec": odd}
    return gang(
        "awkward",
        {**group, "rayStartParams": {}, "template": template},
        enableInTreeAutoscaling=True,
        autoscalerOptions={"resources": {"limits": {"cpu": "1", "memory": "2Gi"}}},
    )


def sample_objects(samples: Path) -> Iterator[tuple[str, Json]]:
    """All RayClusters and RayJobs in KubeRay's samples, and the RayClusters of its RayServices."""
    for path in sorted(samples.rglob("*.yaml")):
        for found in yaml.safe_load_all(path.read_text()):
            match found:
                case {"kind": "RayCluster"}:
                    yield path.name, found
                case {"kind": "RayService", "spec": {"rayClusterConfig": spec}}:
                    yield path.name, {**found, "kind": "RayCluster", "spec": spec}
                case {"kind": "RayJob", "spec": {"rayClusterSpec": {}}}:
                    yield path.name, found


def prepared(found: Json, number: int) -> Json:
    """Make a sample small, a gang, and of every second one a sandboxed one."""
    annotations = found["metadata"].get("annotations") or {}
    found["metadata"] = {"name": f"s-{number}", "labels": GANG, "annotations": annotations}
    found["spec"].pop("suspend", None)
    spec = found["spec"].get("rayClusterSpec", found["spec"])
    spec["headGroupSpec"].pop("headService", None)  # two samples name the same one
    spec["headGroupSpec"]["template"]["spec"].pop("serviceAccountName", None)
    for group in spec.get("workerGroupSpecs") or ():
        group["template"]["spec"].pop("serviceAccountName", None)
        for key in ("replicas", "minReplicas", "numOfHosts"):
            group[key] = min(group.get(key) or 1, MOST)
        if number % 2:
            group["template"]["spec"]["runtimeClassName"] = RUNTIME
    return found


@contextmanager
def changing_namespace(cluster: Cluster, name: str) -> Iterator[Plot]:
    """A namespace that changes the pods it admits, and no node for them: they stay gated."""
    with plotted(cluster, name) as plot:
        metadata = {"name": f"{plot.name}-usual", "labels": plot.selector}
        cluster.create_priority_class(metadata, 7, globalDefault=True)
        add_runtime_class(cluster)
        items = [{"type": "Container", **LIMITS}]
        limits = {"metadata": {"name": "usual"}, "spec": {"limits": items}}
        cluster.api.create(f"/api/v1/namespaces/{plot.name}/limitranges", limits)
        pods = f"/api/v1/namespaces/{plot.name}/pods"
        plot.wait(lambda: not cluster.api.would_create(pods, TOO_SMALL), "the LimitRange to count")
        yield plot


def add_runtime_class(cluster: Cluster) -> None:
    """Add the runtime class of the tests, which stays; pods that do not name it are as before."""
    content = {"metadata": {"name": RUNTIME}, "handler": "none", **SANDBOX}
    if not cluster.api.exists(f"{RUNTIME_CLASSES}/{RUNTIME}"):
        cluster.api.create(RUNTIME_CLASSES, content)


def read(found: Json, kind: type[T]) -> T:
    """Decode an object as the watch does."""
    return msgspec.json.decode(json.dumps(found), type=kind)


def admission(plot: Plot) -> Admission:
    """What there is in the cluster that decides how pods of the plot are admitted."""
    api = plot.cluster.api
    ranges = api.get(f"/api/v1/namespaces/{plot.name}/limitranges")["items"]
    runtimes = [read(each, RuntimeClass) for each in api.get(RUNTIME_CLASSES)["items"]]
    priorities = [read(each, PriorityClass) for each in api.get(PRIORITY_CLASSES)["items"]]
    return Admission(
        tuple(read(each, LimitRange) for each in ranges),
        {each.metadata.name: each for each in runtimes},
        {each.metadata.name: each for each in priorities},
    )


def outlook(found: Json, by: Admission) -> Outlook:
    """Work out the pods of a RayCluster as if it were suspended still."""
    held = {**found, "spec": {**found["spec"], "suspend": True}}
    return foreseen_gang(essential(read(held, RayCluster)), by)


def by_set(pods: Iterable[ObservedPod]) -> dict[str, list[ObservedPod]]:
    """Sort pods by the pod set that they are of."""
    found: dict[str, list[ObservedPod]] = {}
    for pod in pods:
        assert pod.member is not None
        found.setdefault(pod.member.pod_set, []).append(pod)
    return found


def told(pod: ObservedPod) -> Json:
    """All of a pod that a decision is made from, by name of the field."""
    assert pod.member is not None
    member, shape = pod.member, pod.member.shape
    assert shape is not None, member.invalid
    of_shape = {each.name: getattr(shape, each.name) for each in fields(shape)}
    labels = {key: value for key, value in pod.kind[1] if key not in NUMBERED}
    said = {name: getattr(member, name) for name in ("gang", "cluster_uid", "gates", "priority")}
    mounted = {"mounts": pod.mounts, "used": pod.used, "anti_affinity": pod.anti_affinity}
    return {**of_shape, **said, **mounted, "labels": labels, "holder": pod.holder}


def differences(foreseen: Iterable[ObservedPod], real: Iterable[ObservedPod]) -> list[str]:
    """Say field by field where pods differ from those foreseen."""
    expected, there = by_set(foreseen), by_set(real)
    numbers = ({name: len(pods) for name, pods in each.items()} for each in (expected, there))
    before, now = numbers
    found = [] if before == now else [f"pods: foreseen {before}, there are {now}"]
    for name in expected.keys() & there.keys():
        wanted = told(expected[name][0])
        for got in map(told, there[name]):
            wrong = (field for field in wanted if wanted[field] != got[field])
            found += [f"{name} {f}: foreseen {wanted[f]}, is {got[f]}" for f in wrong]
    return found


def clusters_made(plot: Plot) -> dict[str, Json]:
    """The RayClusters that exist, each by the name of what was created for it."""
    made = {}
    for each in plot.all("RayCluster"):
        owners = each["metadata"].get("ownerReferences") or [each["metadata"]]
        made[owners[0]["name"]] = each
    return made


def pods_made(plot: Plot) -> dict[str, list[ObservedPod]]:
    """The pods of each RayCluster."""
    found: dict[str, list[ObservedPod]] = {}
    for each in plot.all("Pod"):
        cluster = label(each, names.RAY_CLUSTER)
        if cluster and label(each, names.RAY_NODE_TYPE):
            found.setdefault(cluster, []).append(observe(read(each, Pod)))
    return found


def judge(plot: Plot) -> None:
    """Create all there is to create, wait until KubeRay made the pods, and compare."""
    files = create_all(plot)
    assert len(files) >= 40, f"KubeRay's samples are not in {plot.cluster.samples}"
    plot.wait(lambda: clusters_made(plot).keys() >= files.keys(), "all RayClusters to be there")
    by, made = admission(plot), clusters_made(plot)
    foreseen = {name: outlook(each, by) for name, each in made.items()}
    assert [(files[n], f) for n, f in foreseen.items() if not isinstance(f, Foreseen)] == []
    ours = {n: [*observed_pods(f)] for n, f in foreseen.items() if isinstance(f, Foreseen)}
    full = {made[name]["metadata"]["name"]: name for name in files}

    def missing() -> list[str]:
        there = pods_made(plot)
        return [
            f"{files[name]}: {len(there.get(cluster, ()))} of {len(ours[name])} pods"
            for cluster, name in full.items()
            if len(there.get(cluster, ())) < len(ours[name])
        ]

    wait_until(lambda: not missing(), "all pods to be there", every=1, seen=missing)
    there = pods_made(plot)
    wrong = {files[n]: differences(ours[n], there[cluster]) for cluster, n in full.items()}
    assert {file: said for file, said in wrong.items() if said} == {}
    judge_quotas(plot, [each for each in foreseen.values() if isinstance(each, Foreseen)])


def judge_quotas(plot: Plot, foreseen: list[Foreseen]) -> None:
    """Compare what quotas would be charged with what the quota controller counts of real pods.

    Nothing is admitted under these quotas: they come after the pods.
    """
    for name, scope in SCOPES.items():
        counted = ("pods",) if name == "best-effort" else (*COMPUTE, *([] if scope else OTHERS))
        spec = {"hard": dict.fromkeys(counted, "0"), **scope}
        plot.create({"kind": "ResourceQuota", "metadata": {"name": name}, "spec": spec})
    plot.wait(lambda: all(map(is_counted, plot.all("ResourceQuota"))), "the quotas to be counted")
    for each in plot.all("ResourceQuota"):
        used = {key: amount(key, text) for key, text in each["status"]["used"].items()}
        free = {**each, "status": {**each["status"], "used": dict.fromkeys(used, "0")}}
        quota = read(free, ResourceQuota)
        needed: Counter[str] = Counter()
        for short in chain.from_iterable(namespace_quota(one, [quota]) for one in foreseen):
            if isinstance(short, QuotaShortage):
                needed[short.resource] += short.needed
        assert needed == {key: n for key, n in used.items() if n}, each["metadata"]["name"]


def is_counted(quota: Json) -> bool:
    """Whether the quota controller has looked at a quota."""
    used = quota.get("status", {}).get("used", {})
    return bool(used.keys() == quota["spec"]["hard"].keys())


def amount(resource: str, text: str) -> int:
    """Read an amount of a quota into whole numbers."""
    return request_amount(resource.removeprefix("requests.").removeprefix("limits."), text)


def create_all(plot: Plot) -> dict[str, str]:
    """Create the samples and a RayCluster more; return of which file each is."""
    plot.create(awkward())
    files = {"awkward": "awkward"}
    for number, (file, found) in enumerate(sample_objects(plot.cluster.samples)):
        made = prepared(found, number)
        plot.create(made)
        files[made["metadata"]["name"]] = file
    return files


@pytest.mark.long
def test_pods_of_all_samples_are_foreseen(muster: Muster) -> None:
    """What is worked out from the templates is what the API server stores."""
    with changing_namespace(muster.cluster, "foreseen") as plot:
        judge(plot)


@pytest.mark.long
@pytest.mark.parametrize("version", [each for each in KUBERAY if each != DEFAULT_KUBERAY])
def test_pods_of_the_samples_of_other_versions_are_foreseen(tmp_path: Path, version: str) -> None:
    """The same with the operators and samples of the other versions of KubeRay."""
    gates = ("--feature-gates=RayJobDeletionPolicy=true",)  # on by default since 1.6
    options = with_muster(Options(kuberay_version=version, kuberay_args=gates))
    with Cluster.start(tmp_path / "root", options) as cluster:
        start_muster(cluster)
        with changing_namespace(cluster, "foreseen") as plot:
            judge(plot)

"""An AppWrapper stands in the form of a RayCluster, and its pods are foreseen from its items."""

from collections import Counter
from typing import Any

import msgspec
import pytest

from appwrapper.gang.pod_sets import foreseen_pods
from appwrapper.gang.source import WrapperSource
from appwrapper.spec import faults
from kube.codec.observed_pod import observe
from kube.foreseen.admission import Admission
from kube.foreseen.gang import (
    MOST_PODS,
    NeverAdmitted,
    Unforeseeable,
    is_foreseen,
    observed_pods,
)
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.objects.base import ObjectMeta, OwnerReference
from kube.objects.core import Pod
from kube.ray.gang_terms import GangTerms, Misconfigured, PodSetTerms
from kube.ray.held_start import is_held
from kube.ray.ray_cluster import essential, opt_in
from scheduling.queueing.membership import NO_SELECTIONS
from tests.appwrapper.samples import (
    Json,
    codeflare,
    config_map,
    deployment,
    foreseen,
    gang,
    job,
    mcad,
    mcad_item,
    obj,
    ray_cluster,
    ray_spec,
    sizes,
    template,
    walk_through,
    wrapper,
)


def used(found: AppWrapper) -> Counter[str]:
    """Add up what the foreseen pods take."""
    total: Counter[str] = Counter()
    for each in observed_pods(foreseen(found)):
        total.update(dict(each.used))
    return total


def test_the_walk_through_takes_what_its_pods_ask_for() -> None:
    """With the 3050m of the system 6050m of 8 CPUs are used: the second does not fit beside it."""
    first, second = used(walk_through()), used(walk_through("raycluster-complete-1"))
    assert (first["cpu"], first["memory"], first["pods"]) == (3000, 4 * 10**9, 2)
    assert second == first
    system, node = 3050, 8000
    assert system + first["cpu"] == 6050
    assert system + first["cpu"] + second["cpu"] > node
    assert gang(walk_through()).notices == ()


def test_the_autoscaler_beside_the_head_counts_though_it_is_not_declared() -> None:
    made_of = ray_cluster(enableInTreeAutoscaling=True)
    found = mcad(mcad_item(made_of, custompodresources=sizes((1, 1), (1, 2))))
    assert used(found)["cpu"] == 3500
    (notice,) = gang(found).notices
    assert notice.endswith("its template asks for 1500m; the larger counts")


def test_pods_of_all_items_are_of_one_gang() -> None:
    found = codeflare(config_map(), deployment(), job(parallelism=3, completions=3))
    pods = [*observed_pods(foreseen(found))]
    members = [each.member for each in pods if each.member]
    assert Counter(each.pod_set for each in members) == {"web": 2, "train": 3}
    for each in members:
        assert (each.gang.namespace, each.gang.name) == ("ns", "appwrapper.aw")
        assert (each.cluster_uid, each.gates) == ("u-1", (names.GATE,))
    assert all(is_foreseen(each) for each in pods)


def test_pods_of_ray_objects_are_made_as_kuberay_makes_them() -> None:
    spec = ray_spec()
    spec["workerGroupSpecs"][0] |= {"replicas": 2, "maxReplicas": 2, "numOfHosts": 2}
    found = foreseen(codeflare(obj("ray.io/v1", "RayJob", "rj", spec={"rayClusterSpec": spec})))
    head, workers = found.pod_sets
    assert head.pod.metadata.labels[names.RAY_NODE_TYPE] == "head"
    assert workers.pod.metadata.labels[names.RAY_GROUP] == "small-group"
    assert workers.pod.metadata.labels[names.POD_SET] == workers.name == "rj.small-group"
    assert [each.name for each in workers.pod.spec.init_containers] == ["wait-gcs-ready"]
    assert (workers.count, workers.hosts) == (4, 2)
    replicas = [each.member.replica for each in observed_pods(found) if each.member]
    assert sorted(Counter(replicas).values()) == [1, 2, 2]


@pytest.mark.parametrize(
    ("phase", "suspended"),
    [("", True), ("Suspended", True), ("Resetting", True), ("Resuming", False), ("Running", False)],
)
def test_it_is_suspended_until_its_objects_exist(phase: str, suspended: bool) -> None:
    found = wrapper({"components": []}, status={"phase": phase, "transitionCount": 4})
    assert gang(found).spec.suspend is suspended
    assert gang(found).metadata.generation == 5


def test_it_is_a_held_gang_unless_it_says_otherwise() -> None:
    found = gang(codeflare(deployment()))
    assert is_held(found)
    assert is_held(essential(found))
    assert opt_in(found.metadata.labels, found.metadata.annotations, {}).gated
    asked = {names.OPT_IN: "false"}
    out = gang(wrapper({"components": []}, metadata={"annotations": asked}))
    assert not opt_in(out.metadata.labels, out.metadata.annotations, {}).gated


def running(found: AppWrapper) -> GangTerms | Misconfigured:
    resumed = msgspec.structs.replace(found.status, phase="Running")
    wrapped = gang(msgspec.structs.replace(found, status=resumed))
    return WrapperSource(wrapped).terms({}, NO_SELECTIONS)


def test_its_terms_have_no_head_and_the_least_available_pods() -> None:
    items = [mcad_item(deployment()), mcad_item(deployment("more", 3))]
    terms = running(mcad(*items, schedulingSpec={"minAvailable": 3}))
    assert isinstance(terms, GangTerms)
    assert terms.pod_sets == (PodSetTerms("web", 2, 2, 1), PodSetTerms("more", 3, 1, 1))


def test_the_minimum_may_be_written_on_the_app_wrapper() -> None:
    meta = {"annotations": {names.MIN_REPLICAS: "web=1", names.QUEUE: "default"}}
    spec = {"components": [{"template": deployment()}]}
    terms = running(wrapper(spec, metadata=meta))
    assert isinstance(terms, GangTerms)
    assert (terms.pod_sets, terms.queue) == ((PodSetTerms("web", 2, 1, 1),), "default")
    bad = running(wrapper(spec, metadata={"annotations": {names.MIN_REPLICAS: "web=3"}}))
    assert isinstance(bad, Misconfigured)


def test_a_gang_without_pods_is_foreseen_as_none() -> None:
    assert foreseen(codeflare(config_map())).pod_sets == ()


def outlook(found: AppWrapper, **admission: Any) -> object:
    return foreseen_pods(gang(found), Admission(**admission))


def test_faults_keep_all_of_it_from_being_created() -> None:
    found = outlook(codeflare(deployment(), deployment("bad", -1)))
    assert isinstance(found, NeverAdmitted)
    assert found.message.startswith("spec.components[1] (Deployment bad): template.spec.replicas: ")


@pytest.mark.parametrize(
    ("made_of", "said"),
    [
        (deployment(cpu="lots"), "pod set[web].template: spec.containers[main].resources"),
        (deployment(priorityClassName="high"), "pod set[web].template: priorityClassName: there"),
    ],
)
def test_what_admission_would_refuse_is_named(made_of: Json, said: str) -> None:
    found = outlook(codeflare(made_of))
    assert isinstance(found, NeverAdmitted)
    assert found.message.startswith(said)


def test_a_size_that_cannot_be_read_is_named() -> None:
    found = outlook(mcad(mcad_item(deployment(), custompodresources=sizes((2, "lots")))))
    assert isinstance(found, NeverAdmitted)
    where = "spec.resources.GenericItems[0] (Deployment web): custompodresources[0].requests[cpu]"
    assert found.message.startswith(f'{where}: "lots" is not valid; allowed:')


def spread(key: str) -> Json:
    selector = {"matchExpressions": [{"key": key, "operator": "Exists"}]}
    return {"topologySpreadConstraints": [{"labelSelector": selector}]}


def devices(template: str) -> Json:
    return {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}]}


def claim(name: str) -> Json:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        (
            [deployment(topologySpreadConstraints=[{"matchLabelKeys": ["pod-template-hash"]}])],
            "the label pod-template-hash is set on pods as they are created",
        ),
        ([job(template=template(**spread("job-name")))], "the label job-name is set on pods"),
        (
            [
                obj(
                    "apps/v1",
                    "StatefulSet",
                    "web",
                    spec={"template": template(), "volumeClaimTemplates": [{}]},
                )
            ],
            "volumeClaimTemplates: claims are made with the pods",
        ),
        (
            [obj("v1", "PersistentVolumeClaim", "own"), deployment(**claim("own"))],
            "PersistentVolumeClaim own is an item of the AppWrapper, and created with the pods",
        ),
        (
            [
                obj("resource.k8s.io/v1", "ResourceClaimTemplate", "own"),
                deployment(**devices("own")),
            ],
            "ResourceClaimTemplate own is an item of the AppWrapper, and created with the pods",
        ),
        (
            [
                obj(
                    "ray.io/v1",
                    "RayJob",
                    "rj",
                    spec={"submissionMode": "SidecarMode", "rayClusterSpec": ray_spec()},
                )
            ],
            "SidecarMode puts the submitter into the head pod",
        ),
        ([deployment(schedulingGates=[{"name": "x/y"}])], "pod set[web].template: spec.scheduling"),
    ],
)
def test_what_shows_only_in_pods_that_exist_is_unforeseeable(
    objects: list[Json], said: str
) -> None:
    found = outlook(codeflare(*objects))
    assert isinstance(found, Unforeseeable)
    assert said in found.message


def test_labels_and_claims_that_are_there_before_are_foreseen() -> None:
    assert foreseen(codeflare(deployment(**spread("app")), deployment("b", **claim("theirs"))))


def test_a_pod_is_of_the_app_wrapper_before_it_is_of_a_ray_cluster() -> None:
    owner = OwnerReference("ray.io/v1", "RayCluster", "rc", "u-rc", controller=True)
    labels = {names.APP_WRAPPER: "aw", names.POD_SET: "rc.headgroup", names.RAY_GROUP: "headgroup"}
    meta = ObjectMeta(
        "p",
        "ns",
        labels={**labels, names.APP_WRAPPER_UID: "u-1"},
        owner_references=(owner,),
    )
    member = observe(Pod(metadata=meta)).member
    assert member is not None
    assert (member.gang.name, member.cluster_uid) == ("appwrapper.aw", "u-1")
    assert member.pod_set == "rc.headgroup"


def test_the_bound_on_pods_is_that_of_all_held_gangs() -> None:
    assert faults.MOST_PODS == MOST_PODS

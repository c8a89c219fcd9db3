"""The pods of a suspended RayCluster are counted and named, or it is said why they cannot be."""

from typing import Any

import msgspec
import pytest

from kube.codec.observed_pod import observe
from kube.foreseen.admission import Admission
from kube.foreseen.gang import (
    MOST_PODS,
    Foreseen,
    NeverAdmitted,
    Unforeseeable,
    foreseen_gang,
    is_foreseen,
    observed_pods,
)
from kube.objects.core import Pod
from kube.objects.names import GATE, RAY_REPLICA_NAME
from tests.kube.foreseen.clusters import (
    Json,
    cluster,
    container,
    foreseen,
    group,
    pod_set,
    template,
)


def counts(*groups: Json, **spec: Any) -> dict[str, tuple[int, int]]:
    found = foreseen(*groups, **spec)
    return {each.name: (each.count, each.hosts) for each in found.pod_sets}


@pytest.mark.parametrize(
    ("numbers", "pods"),
    [
        ({"replicas": 3}, 3),
        ({"replicas": 9, "maxReplicas": 4}, 4),
        ({"replicas": 0, "minReplicas": 2}, 2),
        ({"replicas": -1, "minReplicas": -5}, 0),
        ({"replicas": None, "minReplicas": 1}, 1),
        ({"replicas": 3, "suspend": True}, 0),
        ({"replicas": 0}, 0),
    ],
)
def test_pods_are_counted_as_kuberay_makes_them(numbers: Json, pods: int) -> None:
    """Bounds clamp the replicas; a suspended group has no pods, nor has a pod set without any."""
    expected = {"headgroup": (1, 1), **({"workers": (pods, 1)} if pods else {})}
    assert counts({**group(), **numbers}) == expected


def test_hosts_of_a_replica_are_told_together() -> None:
    found = foreseen(group(3, numOfHosts=2))
    assert counts(group(3, numOfHosts=2))["workers"] == (6, 2)
    members = [each.member for each in observed_pods(found) if each.member]
    replicas = [each.replica for each in members if each.pod_set == "workers"]
    assert [replicas.count(each) for each in sorted({*replicas})] == [2, 2, 2]
    assert RAY_REPLICA_NAME not in pod_set("headgroup", found).pod.metadata.labels


def test_pods_are_gated_and_of_the_ray_cluster() -> None:
    """They have names and uids that no object has, so that nothing is ever written to one."""
    pods = [*observed_pods(foreseen(group(2)))]
    assert len({each.name for each in pods} | {each.uid for each in pods}) == 6
    for each in pods:
        assert each.member is not None
        assert (each.member.gang.namespace, each.member.gang.name) == ("ns", "rc")
        assert each.member.cluster_uid == "u-1"
        assert each.member.gates == (GATE,)
        assert each.raw is not None
        assert (each.raw.metadata.name, each.raw.metadata.uid) == (each.name, each.uid)
        assert (each.holds, each.node, each.alive) == ("", "", True)
        assert is_foreseen(each)
    assert not is_foreseen(observe(msgspec.convert({"metadata": {"name": "rc-head-x"}}, Pod)))


def test_a_template_with_our_gate_is_gated_once() -> None:
    (pod,) = observed_pods(foreseen(head=template(schedulingGates=[{"name": GATE}])))
    assert pod.member is not None
    assert pod.member.gates == (GATE,)


def test_too_many_pods_are_refused_without_counting_them_one_by_one() -> None:
    said = f"workerGroupSpecs: {10**9 + 1} pods are too many; allowed: {MOST_PODS}"
    assert foreseen_gang(cluster(group(10**9)), Admission()) == NeverAdmitted(said)
    assert counts(group(MOST_PODS - 1))["workers"] == (MOST_PODS - 1, 1)


def test_a_template_without_containers_makes_no_pods() -> None:
    """KubeRay refuses the whole RayCluster, also where the group has no replicas."""
    empty: Json = {"spec": {"containers": []}}
    said = (
        "workerGroupSpecs[workers].template: spec.containers: there is none; allowed: one or more"
    )
    assert foreseen_gang(cluster(group(0, empty)), Admission()) == NeverAdmitted(said)
    of_head = foreseen_gang(cluster(head=empty), Admission())
    assert of_head == NeverAdmitted(said.replace("workerGroupSpecs[workers]", "headGroupSpec"))


@pytest.mark.parametrize("amount", ["lots", "-1", "10E", "1.2.3"])
def test_an_amount_that_cannot_be_read_is_named(amount: str) -> None:
    bad = template(container({"requests": {"memory": amount}}))
    found = foreseen_gang(cluster(group(made_of=bad)), Admission())
    assert isinstance(found, NeverAdmitted)
    said = "workerGroupSpecs[workers].template: spec.containers[ray].resources.requests[memory]"
    assert found.message.startswith(f'{said}: "{amount}" is not valid; allowed:')


@pytest.mark.parametrize(
    ("made_of", "said"),
    [
        (template(*(container({"limits": {"memory": "5E"}}, n) for n in "ab")), "spec.containers"),
        (template(resources={"limits": {"cpu": "x"}}), "spec.resources.limits[cpu]"),
    ],
)
def test_amounts_of_the_whole_pod_are_checked_too(made_of: Json, said: str) -> None:
    found = foreseen_gang(cluster(head=made_of), Admission())
    assert isinstance(found, NeverAdmitted)
    assert found.message.startswith(f"headGroupSpec.template: {said}: ")


def test_a_field_of_another_type_is_named() -> None:
    found = foreseen_gang(cluster(head=template(tolerations=7)), Admission())
    assert isinstance(found, NeverAdmitted)
    assert "headGroupSpec cannot be read: Expected `array | null`" in found.message
    assert "tolerations" in found.message


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"nodeName": "a"}, "spec.nodeName binds the pod as it is created"),
        ({"schedulingGates": [{"name": "x/y"}]}, "spec.schedulingGates: x/y"),
        ({"volumes": [{"name": "own", "ephemeral": {}}]}, "the claim of own is made for a pod"),
        ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims: gpu is allocated for a pod"),
        (
            {"topologySpreadConstraints": [{"matchLabelKeys": [RAY_REPLICA_NAME]}]},
            f"matchLabelKeys: {RAY_REPLICA_NAME}",
        ),
        (
            {
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"mismatchLabelKeys": ["ray.io/replica-host-index"]}
                        ]
                    }
                }
            },
            "matchLabelKeys",
        ),
    ],
)
def test_what_shows_only_in_pods_that_exist_is_unforeseeable(spec: Json, said: str) -> None:
    found = foreseen_gang(cluster(group(made_of=template(**spec))), Admission())
    assert isinstance(found, Unforeseeable)
    assert said in found.message


def test_templates_that_are_not_kept_are_unforeseeable() -> None:
    large = template(nodeSelector={f"k{n}": "v" * 60 for n in range(5000)})
    found = foreseen_gang(cluster(group(made_of=large)), Admission())
    assert isinstance(found, Unforeseeable)
    assert "have more than 65536 bytes" in found.message


def test_a_gang_is_foreseen_alike_each_time() -> None:
    one, other = (foreseen(group(2, numOfHosts=2)) for _ in range(2))
    assert isinstance(one, Foreseen)
    assert [*observed_pods(one)] == [*observed_pods(other)]

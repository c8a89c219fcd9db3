"""Quotas that have no room for the claims that kube-scheduler makes for extended resources."""

from collections import Counter
from dataclasses import replace

import msgspec
import pytest

from coordinator.cluster.devices import Devices
from coordinator.gang.claims.of_pods import Claimed, Surroundings, claimed
from kube.codec.devices.pod_claims import PodClaim
from kube.codec.node import node as read_node
from kube.codec.observed_pod import ObservedPod
from kube.devices.device_classes import device_class
from kube.devices.resource_slices import resource_slice
from kube.objects.admission import ResourceQuota
from kube.objects.core import Node
from scheduling.model.verdict import Reason
from scheduling.state.node_snapshot import NodeAttributes
from tests.coordinator.builders import Json, node
from tests.coordinator.claimed import known_devices, put_claim, standing_of, worker
from tests.kube.devices.objects import GPU, decoded, gpu, slice_spec

RESOURCE = "example.com/gpu"
OF_CLASS = f"{GPU}.deviceclass.resource.k8s.io/devices"
CLAIMS = "count/resourceclaims.resource.k8s.io"


def pods(count: int) -> list[ObservedPod]:
    asked = {"requests": {"cpu": "1", RESOURCE: "2"}}
    return [worker(n, None, containers=[{"name": "ray", "resources": asked}]) for n in range(count)]


def giving(*waiting: ObservedPod) -> Devices:
    devices = known_devices(*waiting)
    devices.index.put(device_class(decoded(GPU, {"extendedResourceName": RESOURCE})))
    devices.index.put(resource_slice(decoded("s", slice_spec(gpu("a"), nodeName="n1"))))
    return devices


def nodes(listed: str = "0") -> NodeAttributes:
    raw = node("n1")
    raw["status"]["allocatable"][RESOURCE] = listed
    return NodeAttributes((read_node(msgspec.convert(raw, Node)),))


def quota(hard: Json, used: Json) -> ResourceQuota:
    body = {"metadata": {"name": "q"}, "status": {"hard": hard, "used": used}}
    return msgspec.convert({**body, "spec": {"hard": hard}}, ResourceQuota)


def judged(
    waiting: list[ObservedPod],
    *quotas: ResourceQuota,
    on: NodeAttributes,
    coming: Json | None = None,
) -> Claimed:
    around = Surroundings(on, quotas, lambda: Counter(coming or {}))
    return claimed(standing_of(*waiting), giving(*waiting), around)


@pytest.mark.parametrize(
    ("key", "hard", "used", "left"),
    [(OF_CLASS, 3, 0, 1), (OF_CLASS, 4, 1, 1), (CLAIMS, 1, 0, 0)],
)
def test_the_pods_beyond_a_quota_are_left_out_by_name(
    key: str, hard: int, used: int, left: int
) -> None:
    found = judged(pods(2), quota({key: str(hard)}, {key: str(used)}), on=nodes())
    assert [pod.name for pod in found.standing[0].waiting] == ["w-0"]
    assert found.hindrance is not None
    assert found.hindrance.reason is Reason.GANG_INCOMPLETE
    assert found.hindrance.message == (
        f"pod w-1: ResourceQuota q has {left} of {hard} {key} left, and the claim that "
        f"kube-scheduler makes for its extended resources needs {2 if key == OF_CLASS else 1}"
    )


def test_what_the_quota_counts_of_the_pod_is_not_counted_twice() -> None:
    """The pods are there, and counted, so all of it is used."""
    key = f"requests.{RESOURCE}"
    assert judged(pods(2), quota({key: "4"}, {key: "4"}), on=nodes()).hindrance is None


def test_claims_of_pods_on_their_way_are_counted_first() -> None:
    four = quota({OF_CLASS: "4"}, {OF_CLASS: "0"})
    assert judged(pods(2), four, on=nodes()).hindrance is None
    assert judged(pods(2), four, on=nodes(), coming={OF_CLASS: 2}).hindrance is not None


def test_no_claim_is_made_where_each_node_with_devices_lists_the_resource() -> None:
    none = quota({OF_CLASS: "0"}, {OF_CLASS: "0"})
    found = judged(pods(2), none, on=nodes(listed="8"))
    assert found.hindrance is None
    assert len(found.standing[0].waiting) == 2


def test_pods_with_claims_are_not_bound_where_a_node_lists_what_a_class_gives() -> None:
    """The real kube-scheduler gives up the write of an empty claim."""
    [pod] = pods(1)
    mixed = replace(pod, claims=(PodClaim("own", claim="own"),))
    devices = giving(mixed)
    put_claim(devices, "own")
    listing, other = nodes("2"), nodes()
    assert claimed(standing_of(mixed), devices, Surroundings(other)).hindrance is None
    found = claimed(standing_of(mixed), devices, Surroundings(listing)).hindrance
    assert found is not None
    assert (found.reason, RESOURCE in found.message) == (Reason.UNSUPPORTED, True)
    assert claimed(standing_of(pod), devices, Surroundings(listing)).hindrance is None

"""Pods that wait get their claims into their shapes; those whose claims lack are left out."""

from dataclasses import replace

import msgspec

from coordinator.cluster.devices import Devices
from coordinator.gang.claims.of_pods import Surroundings, claimed
from coordinator.gang.claims.shared import MOST_CONSUMERS, late_sharers
from coordinator.gang.demand import NotReady
from coordinator.messages.events import DeviceApiSeen
from kube.codec.devices.pod_claims import PodClaim
from kube.codec.observed_pod import ObservedPod
from kube.objects.admission import ResourceQuota
from scheduling.model.verdict import Reason
from scheduling.state.node_snapshot import NodeAttributes
from tests.coordinator.claimed import SPEC, known_devices, put_claim, standing_of, worker
from tests.kube.devices.objects import GPU, NODE_IN_A, claim_spec, given, request

NO_NODES = NodeAttributes(())
SURROUNDINGS = Surroundings(NO_NODES)


def refusal(devices: Devices, *pods: ObservedPod) -> tuple[Reason, str]:
    found = claimed(standing_of(*pods), devices, SURROUNDINGS).hindrance
    assert found is not None
    return found.reason, found.message


def test_a_gang_without_claims_is_as_it_was() -> None:
    standing = standing_of(worker(0, None))
    assert claimed(standing, Devices(), SURROUNDINGS).standing is standing


def test_claims_that_are_to_be_allocated_are_given_to_the_shape_and_not_to_its_key() -> None:
    pods = worker(0, "c0"), worker(1, "c1")
    devices = known_devices(*pods)
    put_claim(devices, "c0", "uid-0")
    put_claim(devices, "c1", "uid-1")
    found = claimed(standing_of(*pods), devices, SURROUNDINGS)
    assert found.hindrance is None
    shapes = {pod.member.shape for pod in found.standing[0].waiting if pod.member}
    [shape] = shapes
    assert shape is not None
    assert pods[0].member is not None
    assert pods[0].member.shape is not None
    assert shape.restrictions.claims == (devices.index.claims["team", "c0"].spec,)
    assert shape.key == pods[0].member.shape.key
    assert shape != pods[0].member.shape


def test_what_is_allocated_already_leaves_the_nodes_that_reach_it() -> None:
    pods = [worker(n, shared="shared") for n in range(2)]
    devices = known_devices(*pods)
    put_claim(devices, "shared", status=given("gpu-0", nodeSelector=NODE_IN_A))
    found = claimed(standing_of(*pods), devices, SURROUNDINGS)
    assert found.hindrance is None
    [pod, _] = found.standing[0].waiting
    assert pod.member is not None
    assert pod.member.shape is not None
    added = pod.member.shape.restrictions
    assert added.claims == ()
    assert [name for name, _ in added.claimed_from] == ["shared"]


def test_a_pod_whose_claim_is_not_made_is_left_out_and_the_first_is_named() -> None:
    pods = worker(0, "c0"), worker(1), worker(2)
    devices = known_devices(*pods)
    put_claim(devices, "c0", "uid-0")
    found = claimed(standing_of(*pods), devices, SURROUNDINGS)
    assert [pod.name for pod in found.standing[0].waiting] == ["w-0"]
    reason, message = refusal(devices, *pods)
    assert reason == Reason.GANG_INCOMPLETE
    assert message.startswith("pod w-1, claim gpu: its ResourceClaim is not made yet from Resource")
    assert "FailedResourceClaimCreation" in message
    assert message.endswith("(and 1 more pod)")


def test_a_quota_that_has_no_room_for_a_claim_is_named_with_its_numbers() -> None:
    devices = known_devices(pod := worker(0))
    keys = {f"{GPU}.deviceclass.resource.k8s.io/devices": "2"}
    used = dict.fromkeys(keys, "2")
    body = {
        "metadata": {"name": "q"},
        "spec": {"hard": keys},
        "status": {"hard": keys, "used": used},
    }
    full = msgspec.convert(body, ResourceQuota)
    found = claimed(standing_of(pod), devices, Surroundings(NO_NODES, [full])).hindrance
    assert found is not None
    assert found.reason == Reason.GANG_INCOMPLETE
    assert found.message.endswith(
        "(see Events FailedResourceClaimCreation of the pod); ResourceQuota q has 0 of 2 "
        "gpu.example.com.deviceclass.resource.k8s.io/devices left, and the claim needs 1"
    )


def test_a_claim_of_another_pod_is_none() -> None:
    pod = worker(0, "c0")
    devices = known_devices(pod)
    put_claim(devices, "c0", "another")
    said = "pod w-0, claim gpu: ResourceClaim c0 was not made for this pod"
    assert refusal(devices, pod) == (Reason.GANG_INCOMPLETE, said)


def test_nothing_is_decided_before_all_is_read_or_where_the_api_is_not_served() -> None:
    pod = worker(0, "c0")
    devices = known_devices(pod)
    put_claim(devices, "c0", "uid-0")
    index = devices.index
    index.lose_sight(type(index.claims["team", "c0"]))
    said = "not all is read yet: resourceclaims"
    assert refusal(devices, pod) == (Reason.GANG_INCOMPLETE, said)
    assert claimed(standing_of(pod), devices, SURROUNDINGS).standing[0].waiting == ()
    devices.put_api(DeviceApiSeen("1.33", served=False))
    reason, message = refusal(devices, pod)
    assert reason == Reason.UNSUPPORTED
    assert "Kubernetes 1.33, which does not serve resource.k8s.io/v1 (ask for" in message


def test_a_claim_that_does_not_say_when_it_was_allocated_takes_no_further_pod() -> None:
    """kube-scheduler adds the time when it reserves the claim, and the API server refuses that."""
    pod = worker(0, shared="old")
    devices = known_devices(pod)
    status = given("gpu-0", allocationTimestamp=None)
    put_claim(devices, "old", status=status)
    reason, message = refusal(devices, pod)
    assert reason == Reason.UNSUPPORTED
    assert "ResourceClaim old was allocated by a kube-scheduler before 1.36" in message
    put_claim(devices, "old", status={**status, "reservedFor": [{"uid": "uid-0"}]})
    assert claimed(standing_of(pod), devices, SURROUNDINGS).hindrance is None


def test_devices_that_were_given_with_binding_conditions_let_no_further_pod_be_foreseen() -> None:
    """kube-scheduler refuses the node once a condition has failed, or is not met in time."""
    pod = worker(0, shared="old")
    devices = known_devices(pod)
    status = given("gpu-0")
    status["allocation"]["devices"]["results"][0]["bindingConditions"] = ["attached"]
    put_claim(devices, "old", status=status)
    reason, message = refusal(devices, pod)
    assert reason == Reason.UNSUPPORTED
    assert "ResourceClaim old was given devices with bindingConditions (claim other" in message


def test_pods_of_a_gang_that_share_a_claim_are_told_from_others() -> None:
    pods = [worker(n, shared="shared") for n in range(2)]
    devices = known_devices(*pods)
    put_claim(devices, "shared")
    found = claimed(standing_of(*pods), devices, SURROUNDINGS)
    assert found.hindrance is None
    shapes = {pod.member.shape for pod in found.standing[0].waiting if pod.member}
    [shape] = shapes
    assert shape is not None
    assert shape.restrictions.shared_claims == ("shared",)
    assert shape.restrictions.claims == (devices.index.claims["team", "shared"].spec,)


def test_a_claim_that_pods_of_others_share_must_be_allocated() -> None:
    pods = [worker(n, shared="shared") for n in range(3)]
    devices = known_devices(*pods)
    put_claim(devices, "shared")
    reason, message = refusal(devices, *pods[1:])
    assert reason == Reason.UNSUPPORTED
    assert message.startswith("not supported by Muster; 3 pods use ResourceClaim shared, which is")
    assert "not by pods of this gang alone (give each pod its own by a template)" in message


def test_pods_that_claim_more_than_they_share_must_wait_for_its_allocation() -> None:
    alone, both = worker(0, shared="shared"), worker(1, shared="shared")
    own = PodClaim("own", "own", "one")
    pods = alone, replace(both, claims=(*both.claims, own))
    devices = known_devices(*pods)
    put_claim(devices, "shared")
    put_claim(devices, "own", "uid-1")
    reason, message = refusal(devices, *pods)
    assert reason == Reason.UNSUPPORTED
    assert "some of these pods claim more than they share" in message
    put_claim(devices, "shared", status=given("gpu-0"))
    hindrance = claimed(standing_of(pods[1]), devices, SURROUNDINGS).hindrance
    assert hindrance is None


def test_of_pods_that_share_a_claim_one_is_released_until_it_is_allocated() -> None:
    pods = [worker(n, shared="shared") for n in range(3)]
    devices = known_devices(*pods)
    put_claim(devices, "shared")
    with_slot = tuple((pod, "n") for pod in pods)
    [each] = standing_of(*pods)
    standing = (replace(each, waiting=(), with_slot=with_slot),)
    assert late_sharers(standing, (), devices) == {"uid-1", "uid-2"}
    assert late_sharers(standing, ("uid-1",), devices) == {"uid-0", "uid-2"}
    released = replace(pods[0], raw=None)
    later = (replace(each, waiting=(), settled=(released,), with_slot=with_slot[1:]),)
    assert late_sharers(later, (), devices) == {"uid-1", "uid-2"}
    waiting = (replace(later[0], with_slot=(), waiting=tuple(pods[1:])),)
    found = claimed(waiting, devices, SURROUNDINGS).hindrance
    said = "ResourceClaim shared is not allocated yet; pods that share it wait"
    assert found == NotReady(Reason.GANG_INCOMPLETE, said)
    put_claim(devices, "shared", status=given("gpu-0"))
    assert late_sharers(later, (), devices) == frozenset()
    assert claimed(waiting, devices, SURROUNDINGS).hindrance is None


def test_no_more_pods_share_a_claim_than_the_api_server_takes() -> None:
    pods = [worker(n, shared="shared") for n in range(MOST_CONSUMERS + 1)]
    devices = known_devices(*pods)
    put_claim(devices, "shared", status=given("gpu-0"))
    said = "257 pods use ResourceClaim shared; allowed: 256"
    assert refusal(devices, *pods) == (Reason.MISCONFIGURED, said)
    assert (
        claimed(standing_of(*pods[1:]), known_without(devices, pods[0]), SURROUNDINGS).hindrance
        is None
    )


def known_without(devices: Devices, pod: ObservedPod) -> Devices:
    devices.count(pod, -1)
    return devices


def test_equal_pods_with_different_claims_are_not_told_apart() -> None:
    """Their template was deleted and made anew between the two."""
    pods = worker(0, "c0"), worker(1, "c1")
    devices = known_devices(*pods)
    put_claim(devices, "c0", "uid-0", SPEC)
    put_claim(devices, "c1", "uid-1", claim_spec(request(count=2)))
    reason, message = refusal(devices, *pods)
    assert reason == Reason.UNSUPPORTED
    assert "its ResourceClaimTemplate was made anew (delete these pods)" in message

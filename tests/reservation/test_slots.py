"""A placement keeps its slots as its pods come and go."""

import msgspec

from kube.codec.observed_pod import ObservedPod, observe
from kube.objects import core as core_objects
from kube.objects import names
from reservation.replicas import without_halves
from reservation.slots import kind_of
from reservation.unclaimed import without_unclaimed
from scheduling.model.placement import Assignment, Placement
from tests.coordinator.builders import pinned_to, pod_of, ray_cluster, template

CLUSTER = ray_cluster("a")
CLUSTER["metadata"]["uid"] = "a"
HOSTS = {"workers": 2}


def worker(name: str, node: str = "", cpu: int = 1, replica: str = "r") -> ObservedPod:
    """A pod of a replica, released and bound to a node, or gated."""
    spec = template(cpu=cpu, **(pinned_to(node) if node else {}))
    raw = pod_of(CLUSTER, "workers", name, spec, replica, [] if node else [names.GATE])
    raw["metadata"]["uid"] = name
    return observe(msgspec.convert(raw, core_objects.Pod))


def slots(pod: ObservedPod, **nodes: int) -> Placement:
    kind = kind_of(pod)
    assert kind is not None
    return Placement((Assignment(*kind, requests=pod.used, nodes=tuple(nodes.items())),))


def test_the_slots_of_a_replica_that_lost_one_are_given_up() -> None:
    pods = [worker("one"), worker("two")]
    assert without_halves(slots(pods[0], n1=1), pods, HOSTS, {}) == Placement()
    assert without_halves(slots(pods[0], n1=2), pods, HOSTS, {}) == slots(pods[0], n1=2)


def test_a_pod_that_runs_where_nothing_was_promised_makes_the_replica_whole() -> None:
    """Or the slot for the other one would be decided and given up for ever."""
    pods = [worker("one", "n2"), worker("two")]
    assert without_halves(slots(pods[1], n1=1), pods, HOSTS, {}) == slots(pods[1], n1=1)


def test_a_pod_that_was_resized_on_its_slot_is_counted_once() -> None:
    pods = [worker("one", "n1", cpu=2), worker("two")]
    assert without_halves(slots(pods[1], n1=2), pods, HOSTS, {}) == slots(pods[1], n1=2)


def claimed(placement: Placement, pods: list[ObservedPod], wanted: int, hosts: int) -> Placement:
    return without_unclaimed(placement, pods, {"workers": wanted}, {"workers": hosts}, {})


def test_a_slot_that_no_pod_can_take_is_given_up_once_all_pods_exist() -> None:
    pods = [worker("one", "n1"), worker("other", cpu=2)]
    placement = slots(pods[0], n1=2)
    assert claimed(placement, pods, wanted=3, hosts=1) == placement
    assert claimed(placement, pods, wanted=2, hosts=1) == slots(pods[0], n1=1)
    assert claimed(placement, pods[:1], wanted=1, hosts=1) == placement


def test_a_slot_to_which_a_release_may_be_on_its_way_is_not_the_one_that_is_given_up() -> None:
    pods = [worker("one"), worker("other", cpu=2)]
    placement = slots(pods[0], n1=1, n2=1)
    kept = without_unclaimed(placement, pods, {"workers": 2}, {"workers": 1}, {"one": "n2"})
    assert kept == slots(pods[0], n2=1)


def test_a_whole_new_replica_waits_for_the_slots_of_one_of_its_make_that_is_leaving() -> None:
    pods = [worker("one", "n1"), *(worker(name, replica="q") for name in ("three", "four"))]
    placement = slots(pods[0], n1=2)
    assert claimed(placement, pods, wanted=2, hosts=2) == placement


def test_a_new_replica_of_another_make_has_the_slots_given_up_when_it_is_whole() -> None:
    pods = [worker(name, cpu=2, replica="q") for name in ("three", "four")]
    placement = slots(worker("one"), n1=2)
    assert claimed(placement, pods[:1], wanted=2, hosts=2) == placement
    assert claimed(placement, pods, wanted=2, hosts=2) == Placement()


def test_no_half_replica_of_pods_that_do_not_say_theirs_has_slots_given_up() -> None:
    pods = [worker(name, cpu=2, replica="") for name in ("three", "four", "five")]
    placement = slots(worker("one", replica=""), n1=4)
    assert claimed(placement, pods[:1], wanted=4, hosts=2) == placement
    assert claimed(placement, pods, wanted=4, hosts=2) == slots(worker("one", replica=""), n1=2)

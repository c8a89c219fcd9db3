"""Between two release waves: slots whose devices went to others are named, and pods that wait."""

from collections import Counter

import pytest

from coordinator.gang.claims.slots import PodsByClaims, compared
from coordinator.gang.pods.pod_sets import Standing, survey
from kube.codec.observed_pod import ObservedPod
from kube.ray.gang_terms import GangTerms, PodSetTerms
from reservation.slots import slot_of
from scheduling.model.placement import Assignment, Placement
from tests.coordinator.claimed import known_devices, put_claim, worker

PODS = worker(0, "c0"), worker(1, "c1")


def with_slots(*pods: ObservedPod) -> Standing:
    """A gang of two waves; the one of these pods is due."""
    member = pods[0].member
    assert member is not None
    assert member.shape is not None
    shape = member.shape
    slots = Assignment("w", "", shape.key, shape.requests, (("n1", len(pods)),))
    terms = GangTerms("", "", (PodSetTerms("w", len(pods), len(pods), 1),))
    return survey(terms, pods, Placement((slots,)), {})


@pytest.mark.parametrize(("left", "gone", "unsure"), [(True, 0, 0), (False, 2, 0), (None, 0, 2)])
def test_pods_wait_until_it_is_known_what_is_left_and_lose_their_slots_where_it_is_too_little(
    left: bool | None, gone: int, unsure: int
) -> None:
    devices, asked = known_devices(*PODS), []
    for number in range(2):
        put_claim(devices, f"c{number}", f"uid-{number}")
    spec = devices.index.claims["team", "c0"].spec

    def answer(node: str, pods: PodsByClaims) -> bool | None:
        asked.append((node, pods))
        return left

    found = compared(with_slots(*PODS), (), devices, {}, answer)
    assert asked == [("n1", Counter({(spec,): 2}))]
    assert found.gone == Counter({slot_of(PODS[0], "n1"): gone} if gone else {})
    assert len(found.unsure) == unsure


def test_pods_whose_release_was_sent_are_not_called_back() -> None:
    devices = known_devices(*PODS)
    sent = {pod.uid for pod in PODS}
    found = compared(with_slots(*PODS), sent, devices, {}, lambda _node, _pods: False)
    assert found.gone == Counter()
    assert found.unsure == frozenset()

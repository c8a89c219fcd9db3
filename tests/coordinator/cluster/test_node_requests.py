"""ProvisioningRequests are kept by the Gang that owns them."""

from dataclasses import replace

from coordinator.cluster.node_requests import NodeRequests
from kube.codec.provisioning import Answer, NodeRequest
from scheduling.model.gang import GangKey

KEY = GangKey("team", "a")
FIRST = NodeRequest(
    "team", "a-1", "uid-1", "a", "uid-a", "pods", 1, (), Answer.PENDING, "", 0.0, ending=False
)


def test_one_that_comes_in_is_found_by_its_gang_and_answers_what_was_before() -> None:
    requests = NodeRequests()
    second = replace(FIRST, name="a-2", uid="uid-2", attempt=2)
    assert requests.put(second) is None
    assert requests.put(FIRST) is None
    failed = replace(FIRST, answer=Answer.FAILED)
    assert requests.put(failed) == FIRST
    assert requests.of(KEY, "uid-a") == [failed, second]


def test_those_of_an_earlier_gang_of_the_name_are_not_its_own() -> None:
    requests = NodeRequests()
    requests.put(FIRST)
    assert requests.of(KEY, "uid-later") == []
    assert requests.of(GangKey("other", "a"), "uid-a") == []


def test_one_that_goes_takes_no_other_of_its_name_with_it() -> None:
    requests = NodeRequests()
    requests.put(FIRST)
    again = replace(FIRST, uid="uid-2")
    requests.put(again)
    requests.drop(FIRST)
    assert requests.of(KEY, "uid-a") == [again]
    requests.drop(again)
    requests.drop(again)
    assert requests.of(KEY, "uid-a") == []

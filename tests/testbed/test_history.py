"""The check of the history finds each fault, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.history import Finding, PodEvent, overlaps, partial_gangs, pod_event

GANG = ("team", "train")
SIZE = 3


def gated(time: float, number: int, cluster: str = "train", owner: str = "first") -> PodEvent:
    name = f"{cluster}-{number}"
    return PodEvent(
        time, "ADDED", "team", name, f"{owner}-{name}", cluster, owner=owner, gates=("gate",)
    )


def bound(pod: PodEvent, time: float) -> PodEvent:
    return replace(pod, time=time, type="MODIFIED", gates=(), node="node", unschedulable="")


def refused(pod: PodEvent, time: float) -> PodEvent:
    return replace(pod, time=time, type="MODIFIED", gates=(), unschedulable="0/1 nodes")


def deleting(pod: PodEvent, time: float) -> PodEvent:
    return replace(pod, time=time, type="MODIFIED", deleting=True)


def gone(pod: PodEvent, time: float) -> PodEvent:
    return replace(pod, time=time, type="DELETED", deleting=True)


def check(*events: PodEvent, until: float = 100.0, within: float = 10.0) -> list[Finding]:
    return partial_gangs(events, {GANG: SIZE}, until, within)


FIRST, SECOND, THIRD = (gated(0.0, number) for number in range(SIZE))
CREATED = (FIRST, SECOND, THIRD)
WHOLE = (*CREATED, bound(FIRST, 1.0), bound(SECOND, 2.0), bound(THIRD, 3.0))


def test_a_gang_that_waits_is_not_partial() -> None:
    assert not check(*CREATED)


def test_a_gang_that_starts_whole_is_not_partial() -> None:
    assert not check(*WHOLE)


def test_a_gang_of_which_a_part_is_bound_for_ever_is_partial() -> None:
    (finding,) = check(*CREATED, bound(FIRST, 1.0), bound(SECOND, 2.0))
    assert finding.time == 1.0
    assert str(finding) == "team/train: 2 of 3 pods held room for 99.0 s and the rest did not come"


def test_a_gang_that_takes_too_long_is_partial_though_it_came() -> None:
    events = (*CREATED, bound(FIRST, 1.0), bound(SECOND, 2.0), bound(THIRD, 12.0))
    assert check(*events)
    assert not check(*events, within=11.0)


def test_a_gang_that_is_still_starting_is_not_partial() -> None:
    assert not check(*CREATED, bound(FIRST, 1.0), until=5.0)


def test_a_gang_with_an_unschedulable_pod_is_partial_at_once() -> None:
    (finding,) = check(*CREATED, bound(FIRST, 1.0), refused(SECOND, 1.5), until=2.0)
    assert str(finding) == (
        "team/train: 1 of 3 pods held room while train-1 was unschedulable: 0/1 nodes"
    )


def test_it_makes_no_difference_that_the_pod_was_unschedulable_before() -> None:
    assert check(*CREATED, refused(SECOND, 0.5), bound(FIRST, 1.0), until=2.0)


def test_a_gang_that_found_its_room_in_the_end_was_partial_nevertheless() -> None:
    late = (bound(FIRST, 1.0), refused(SECOND, 1.1), bound(SECOND, 2.0), bound(THIRD, 2.0))
    assert check(*CREATED, *late)


def test_a_gang_that_is_wholly_unschedulable_holds_nothing() -> None:
    assert not check(*(refused(pod, 1.0) for pod in CREATED))


def test_what_is_lost_after_the_start_makes_no_partial_gang() -> None:
    assert not check(*WHOLE, gone(bound(FIRST, 4.0), 5.0), until=100.0)


def test_a_start_that_is_given_up_is_judged_by_its_time() -> None:
    begun = (*CREATED, bound(FIRST, 1.0))
    assert not check(*begun, deleting(bound(FIRST, 1.0), 5.0))
    assert check(*begun, deleting(bound(FIRST, 1.0), 50.0))


def test_each_start_of_a_gang_is_judged() -> None:
    stopped = [gone(bound(pod, 3.0), 4.0) for pod in CREATED]
    again = [gated(5.0, number) for number in range(SIZE, 2 * SIZE)]
    assert check(*WHOLE, *stopped, *again, bound(again[0], 6.0))


def test_a_cluster_made_again_under_its_name_is_another_gang() -> None:
    again = [gated(4.0, number, owner="second") for number in range(SIZE)]
    assert check(*WHOLE, *again, bound(again[0], 5.0))
    assert not check(*WHOLE, *again)


def test_a_pod_on_its_way_out_does_not_make_a_gang_whole() -> None:
    going = deleting(bound(THIRD, 3.0), 3.0)
    assert check(*CREATED, bound(FIRST, 1.0), bound(SECOND, 2.0), going)


def test_gangs_without_a_size_are_not_judged() -> None:
    others = [gated(0.0, number, "other") for number in range(SIZE)]
    plain = PodEvent(1.0, "ADDED", "team", "plain", "plain", node="node")
    assert not check(*others, bound(others[0], 1.0), plain)


RIVALS = (GANG, ("team", "other"))
OTHER = gated(0.0, 0, "other")


def test_rivals_that_hold_room_at_once_are_found_once() -> None:
    (finding,) = overlaps((*WHOLE, bound(OTHER, 4.0), bound(OTHER, 5.0)), RIVALS)
    assert str(finding) == "team/other: got room while team/train held some"
    assert finding.time == 4.0


def test_a_rival_may_have_the_room_of_a_gang_that_is_going() -> None:
    going = deleting(bound(FIRST, 4.0), 4.0)
    still_there = bound(SECOND, 4.5)
    assert not overlaps((*WHOLE, going, still_there, bound(OTHER, 5.0)), RIVALS)


def test_a_rival_that_left_and_came_back_is_found() -> None:
    left = gone(bound(OTHER, 1.0), 2.0)
    back = gated(3.0, 1, "other")
    assert overlaps((bound(OTHER, 1.0), left, *WHOLE, bound(back, 4.0)), RIVALS)


def test_only_rivals_exclude_each_other() -> None:
    assert not overlaps((*WHOLE, bound(OTHER, 4.0)), [GANG])


def test_an_event_says_what_matters_of_a_pod() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = {
        "metadata": {
            "namespace": "team",
            "name": "train-0",
            "uid": "1",
            "labels": {"ray.io/cluster": "train", "ray.io/group": "workers"},
            "ownerReferences": [{"uid": "other"}, {"uid": "owner", "controller": True}],
            "deletionTimestamp": "2030-01-01T00:00:00Z",
        },
        "spec": {
            "nodeName": "node-1",
            "schedulingGates": [{"name": "a"}, {"name": "b"}],
            "affinity": {"nodeAffinity": required},
        },
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "reason": "Unschedulable", "message": "no"}],
        },
    }
    assert pod_event(1.0, "ADDED", pod) == PodEvent(
        time=1.0,
        type="ADDED",
        namespace="team",
        name="train-0",
        uid="1",
        cluster="train",
        group="workers",
        owner="owner",
        node="node-1",
        phase="Pending",
        gates=("a", "b"),
        pinned_node="node-1",
        unschedulable="no",
        deleting=True,
    )


@pytest.mark.parametrize("values", [[], ["a", "b"]])
def test_an_affinity_to_none_or_several_nodes_is_no_pin(values: list[str]) -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": values}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    metadata = {"namespace": "team", "name": "a", "uid": "1"}
    pod = {"metadata": metadata, "spec": {"affinity": {"nodeAffinity": required}}}
    assert pod_event(1.0, "ADDED", pod).pinned_node == ""

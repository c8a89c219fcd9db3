"""Queues: a tree with quota and use, and the gangs of one in their order."""

import pytest

from cli.endings import Absent
from cli.report.queues import one_queue_report, queues_report
from cli.report.snapshot import QUEUES, Snapshot, Unread
from tests.cli.objects import GPU, gang, placement, queue

COMPANY = (
    queue("company", usage={GPU: "132"}),
    queue(
        "research",
        {GPU: 80},
        "company",
        usage={GPU: "72"},
        reserved={GPU: "8"},
        pending=3,
        admitted=2,
    ),
    queue(
        "product",
        {GPU: 48},
        "company",
        usage={GPU: "60"},
        borrowed={GPU: "12"},
        rules={"borrowingLimit": {GPU: 16}},
    ),
    queue("lab", {GPU: 1}, "nowhere", conditions=[
        {"type": "Active", "status": "False", "message": "spec.parent: no queue nowhere"}
    ]),
)  # fmt: skip


def test_queues_come_as_a_tree_with_what_each_may_still_take() -> None:
    found = queues_report(Snapshot(queues=COMPANY)).queues
    assert [(each.name, each.depth) for each in found] == [
        ("company", 0),
        ("product", 1),
        ("research", 1),
        ("lab", 0),
    ]
    (gpus,) = next(each for each in found if each.name == "research").resources
    assert (gpus.quota, gpus.used, gpus.reserved, gpus.borrowed) == ("80", "72", "8", None)
    # The two use 132 of the 80 + 48 that the company has: there is nothing to borrow.
    assert gpus.may_take == "0"
    lab = found[-1]
    assert (lab.active, lab.fault) == (False, "spec.parent: no queue nowhere")


def test_what_a_queue_may_take_is_its_quota_and_what_it_may_borrow() -> None:
    free = (queue("company"), queue("a", {GPU: 8}, "company"), queue("b", {GPU: 4}, "company"))
    taken = {each.name: each.resources for each in queues_report(Snapshot(queues=free)).queues}
    assert taken["a"][0].may_take == "12"
    assert taken["b"][0].may_take == "12"


def test_the_quota_of_a_parent_is_what_its_gangs_and_those_below_share() -> None:
    """As `kubectl get gangqueues` has it: what it uses counts in the same."""
    lends = queue("a", {GPU: 8}, "company", rules={"lendingLimit": {GPU: 6}})
    tree = (queue("company", {GPU: 4}), lends, queue("b", {GPU: 4}, "company"))
    quota = {
        each.name: each.resources[0].quota for each in queues_report(Snapshot(queues=tree)).queues
    }
    assert quota == {"company": "14", "a": "8", "b": "4"}


def test_waiting_gangs_come_by_position_then_priority_then_age() -> None:
    gangs = (
        gang("late", position=3, created="2026-11-22T08:00:00Z"),
        gang("early", position=3, created="2026-11-22T07:00:00Z"),
        gang("urgent", position=3, priority=10, created="2026-11-22T09:00:00Z"),
        gang("first", position=1),
        gang("gathers", "Gathering"),
        gang("other", position=1, queue="product"),
        gang("runs", "Running", placement=placement(gpus=2, a=3, b=1)),
        gang("gave-up", "Failed"),
    )
    report = one_queue_report(Snapshot(queues=COMPANY, gangs=gangs), "research")
    assert [each.name for each in report.waiting] == [
        "first",
        "urgent",
        "early",
        "late",
        "gathers",
    ]
    (runs,) = report.holding
    assert (runs.name, runs.holds[GPU], runs.holds["cpu"]) == ("runs", "8", "16000m")
    assert [each.name for each in report.failed] == ["gave-up"]
    assert report.rules["whenBlocked"] == "BestEffort"


def test_a_gang_counts_in_the_queue_that_it_holds_quota_of() -> None:
    moved = gang("g", "Running", queue="product", placement=placement("research", a=1))
    found = Snapshot(queues=COMPANY, gangs=(moved,))
    assert [each.name for each in one_queue_report(found, "research").holding] == ["g"]
    assert one_queue_report(found, "product").holding == ()


def test_the_built_in_queue_has_no_object_and_is_shown_with_its_gangs() -> None:
    found = Snapshot(queues=COMPANY, gangs=(gang("g", queue="", position=1),))
    assert [each.name for each in one_queue_report(found, "default").waiting] == ["g"]
    built_in = next(each for each in queues_report(found).queues if each.name == "default")
    assert (built_in.pending, built_in.admitted) == (1, 0)


def test_a_queue_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(Absent, match="no GangQueue x; there are: company, lab, product, research"):
        one_queue_report(Snapshot(queues=COMPANY), "x")


def test_without_the_right_to_list_queues_those_of_gangs_are_known_by_name() -> None:
    found = Snapshot(gangs=(gang("g"),), unread=(Unread(QUEUES, "not allowed"),))
    assert [each.name for each in queues_report(found).queues] == ["research"]
    with pytest.raises(Absent, match="gangqueues cannot be listed"):
        one_queue_report(found, "product")


def test_parents_in_a_circle_are_shown_all_the_same() -> None:
    circle = (queue("a", parent="b"), queue("b", parent="a"))
    assert [each.name for each in queues_report(Snapshot(queues=circle)).queues] == ["a", "b"]


def test_a_queue_that_is_not_active_may_take_nothing() -> None:
    ending = [{"type": "Active", "status": "False", "message": "the GangQueue is being deleted"}]
    (found,) = queues_report(Snapshot(queues=(queue("q", {GPU: 8}, conditions=ending),))).queues
    (resource,) = found.resources
    assert (found.active, resource.quota, resource.may_take) == (False, "8", None)

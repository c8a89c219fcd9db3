"""When a cluster waited, was admitted, ran and was stopped, from conditions and Events."""

from typing import Any

import msgspec

from cli.page.reading.timeline import timeline
from cli.report.objects import Event
from kube.objects.gang import Gang
from kube.objects.ray import RayCluster
from tests.cli.page.reading.fake_api import gang, ray_cluster


def at(minute: int) -> str:
    return f"2026-01-01T00:{minute:02}:00Z"


def condition(kind: str, status: str, minute: int, reason: str = "") -> dict[str, Any]:
    said = {"type": kind, "status": status, "reason": reason or kind}
    return {**said, "lastTransitionTime": at(minute)}


def event(reason: str, first: int, last: int, count: int = 1) -> tuple[str, Event]:
    times = {"firstTimestamp": at(first), "lastTimestamp": at(last)}
    said = {"reason": reason, "type": "Warning", "message": f"of {reason}", "count": count}
    return "Gang", msgspec.convert({**said, **times}, Event)


def zones(
    *events: tuple[str, Event],
    conditions: list[dict[str, Any]] | None = None,
    kuberay: list[dict[str, Any]] | None = None,
    is_gang: bool = True,
) -> list[tuple[str, str, str]]:
    cluster = msgspec.convert(ray_cluster("a", status={"conditions": kuberay or []}), RayCluster)
    found = msgspec.convert(gang("a", conditions=conditions or []), Gang) if is_gang else None
    said = timeline(cluster, found, events).zones
    return [(each.state, each.begin[14:16], each.end[14:16]) for each in said]


def test_one_that_waited_and_runs_has_a_zone_for_each_state() -> None:
    found = zones(
        event("InsufficientResources", 0, 5),
        event("Admitted", 7, 7),
        conditions=[condition("Admitted", "True", 7), condition("Ready", "True", 9, "Running")],
    )
    assert found == [("waited", "00", "07"), ("admitted", "07", "09"), ("running", "09", "")]


def test_one_that_was_stopped_and_waits_again_tells_of_both() -> None:
    found = zones(
        event("QuotaExceeded", 1, 3),
        event("Admitted", 4, 4),
        event("Preempted", 20, 20),
        conditions=[condition("Admitted", "False", 20), condition("Ready", "False", 20)],
    )
    assert found == [("waited", "00", "04"), ("admitted", "04", "20"), ("waited", "20", "")]


def test_one_that_a_person_suspended_is_stopped() -> None:
    found = zones(conditions=[condition("Admitted", "False", 30, "Suspended")])
    assert found == [("waited", "00", "30"), ("stopped", "30", "")]


def test_what_is_told_of_one_that_holds_its_place_is_no_wait() -> None:
    """Of surplus that finds no room, for example."""
    found = zones(
        event("InsufficientResources", 8, 12, count=3),
        conditions=[condition("Admitted", "True", 2), condition("Ready", "True", 3)],
    )
    assert found == [("waited", "00", "02"), ("admitted", "02", "03"), ("running", "03", "")]


def test_without_a_gang_the_times_are_kuberays() -> None:
    kuberay = [condition("RayClusterProvisioned", "True", 6), condition("HeadPodReady", "True", 5)]
    assert zones(kuberay=kuberay, is_gang=False) == [("waited", "00", "06"), ("running", "06", "")]
    suspended = [*kuberay, condition("RayClusterSuspended", "True", 8)]
    assert zones(kuberay=suspended, is_gang=False)[-1] == ("stopped", "08", "")


def test_times_that_are_none_and_reasons_of_others_are_left_out() -> None:
    broken = msgspec.convert({"reason": "Preempted", "lastTimestamp": "<img>"}, Event)
    foreign = msgspec.convert({"reason": "Created", "lastTimestamp": at(9)}, Event)
    cluster = msgspec.convert(ray_cluster("a"), RayCluster)
    found = timeline(cluster, None, [("Gang", broken), ("RayCluster", foreign)])
    assert [each.state for each in found.zones] == ["waited"]
    assert [each.reason for each in found.moments] == ["Created", "Preempted"]

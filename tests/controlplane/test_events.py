"""`kubectl describe` of a Ray cluster, its Gang and its head pod shows why the gang waits."""

import time

import pytest

from coordinator.record.event_budget import BURST, REFILL
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, pod

BAD, STORM = "?", 60


def described(plot: Plot, kind: str, name: str) -> str:
    """The Events that `kubectl describe` prints."""
    text = plot.cluster.kubectl("describe", kind, name, "-n", plot.name)
    return text.partition("\nEvents:")[2]


def wait_described(plot: Plot, name: str, *parts: str) -> None:
    """Wait until the Events of the RayCluster, the Gang and the head pod say all of this."""
    [head] = plot.pods(name, "head")
    for kind, which in (("raycluster", name), ("gang", name), ("pod", head["metadata"]["name"])):

        def said(kind: str = kind, which: str = which) -> bool:
            events = described(plot, kind, which)
            return all(part in events for part in parts)

        plot.wait(said, f"{kind} {which} to show {parts}")


def told(plot: Plot, name: str) -> dict[str, Json]:
    """The Events on a RayCluster by reason, of which each has one."""
    mine = [each for each in plot.all("Event") if each["regarding"]["kind"] == "RayCluster"]
    ours = [each for each in mine if each["reportingController"].startswith("muster.dev/")]
    found = {each["reason"]: each for each in ours if each["regarding"]["name"] == name}
    assert len(found) == len(ours)
    return found


def test_describe_says_with_the_numbers_of_now_why_a_gang_waits(plot: Plot) -> None:
    """The Event of a reason is changed, not joined by another."""
    plot.add_node(8)
    for number in range(5):
        plot.create(pod(f"other-{number}"))
    plot.create(gang("waits", group(replicas=4)))
    first = plot.wait_phase("waits", "Queued", "InsufficientResources")["message"]
    wait_described(plot, "waits", "Warning", "InsufficientResources", first)
    plot.scale("waits", replicas=6)
    now = plot.wait_phase("waits", "Queued", "InsufficientResources", "6 workers")["message"]
    plot.mark("waits", min_replicas=BAD)
    bad = plot.wait_phase("waits", "Gathering", "Misconfigured")["message"]
    wait_described(plot, "waits", "Misconfigured", bad)
    plot.mark("waits", min_replicas=None)
    wait_described(plot, "waits", "InsufficientResources", now)
    assert first not in described(plot, "raycluster", "waits")
    event = told(plot, "waits")["InsufficientResources"]
    assert event["note"] == now
    assert event["deprecatedCount"] >= 2


@pytest.mark.variant
def test_a_storm_of_patches_makes_a_handful_of_events(plot: Plot) -> None:
    """Each patch changes the reason for which the gang waits."""
    plot.add_node(8)
    for number in range(5):
        plot.create(pod(f"other-{number}"))
    plot.create(gang("stormy", group(replicas=4)))
    plot.wait_phase("stormy", "Queued", "InsufficientResources")
    began = time.monotonic()
    for number in range(STORM):
        plot.mark("stormy", min_replicas=BAD if number % 2 else None)
    plot.wait_phase("stormy", "Gathering", "Misconfigured")
    plot.wait_event("stormy", "Misconfigured")
    events = told(plot, "stormy")
    most = BURST + 1 + (time.monotonic() - began) / REFILL
    assert sum(each["deprecatedCount"] for each in events.values()) <= most

"""What nominations cost is told against the same without them."""

import msgspec

from benchmarks.burst import Burst, nomination_rows
from benchmarks.kinds import NOMINATING, UNGUARDED
from benchmarks.nomination import NOMINATED, NOT, rows
from benchmarks.podwatch import _Event, _stages
from benchmarks.throughput import FREE, PINNED, Run


def test_pods_a_second_are_those_with_nominations_over_those_without() -> None:
    found = {
        NOMINATED: [Run({PINNED: 90.0, FREE: 40.0}, {})],
        NOT: [Run({PINNED: 100.0, FREE: 80.0}, {})],
    }
    pinned, free = rows(found)
    assert (pinned.ratios, free.ratios) == ((0.9,), (0.5,))


def test_a_pod_counts_as_nominated_while_it_is_gated() -> None:
    """kube-scheduler itself sets the field of pods that it binds."""
    status = {"nominatedNodeName": "n1"}
    gated = {"spec": {"schedulingGates": [{"name": "x"}]}, "status": status}
    for pod, stages in ((gated, ["nominated"]), ({"status": status}, ["released"])):
        event = msgspec.convert({"type": "MODIFIED", "object": {"metadata": {}, **pod}}, _Event)
        assert list(_stages(event)) == stages


def test_a_burst_with_nominations_is_held_against_one_without() -> None:
    def burst(seconds: float) -> Burst:
        return Burst(seconds, seconds, {"etcd": seconds}, {}, 1.0)

    clock, cpu = nomination_rows({UNGUARDED: [burst(10.0)], NOMINATING: [burst(10.2)]})
    assert [row.met for row in (clock, cpu)] == [True, True]
    assert (clock.ours_are, clock.floor_is) == ("Muster, nominating", "Muster, no guard")
    late, _ = nomination_rows({UNGUARDED: [burst(10.0)], NOMINATING: [burst(10.4)]})
    assert late.met is False

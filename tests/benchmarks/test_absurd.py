"""The gangs that hold a cycle up, on a cluster where they do not."""

from benchmarks.absurd import gangs, samples


def test_each_gets_a_verdict() -> None:
    """Fifty racks of one node are enough for units that need racks of their own."""
    found = {sample.gang: sample.verdict for sample in samples(nodes=50)}
    assert found == {
        "one pod per host": "Admitted",
        "one more pod than hosts": "NoFeasibleNode",
        "five units, each in racks of its own": "Admitted",
        "five units, each with affinity to the next": "NoFeasibleNode",
        "the same, one pod of each per host": "NoFeasibleNode",
        "twenty shapes": "Admitted",
        "two shapes, one pod too many": "InsufficientResources",
    }


def test_they_have_at_least_as_many_pods_as_there_are_nodes() -> None:
    """Five of some units, twenty shapes, or one."""
    for gang in gangs(100).values():
        assert sum(group.count for group in gang.minimum) >= 100

"""What no node could ever hold is named with the resource that no node has enough of."""

from scheduling.model.verdict import Reason
from tests.builders import columns, group, node, shape
from tests.scheduling.diagnosis.test_refusals import refusal


def test_a_resource_of_which_a_node_has_just_enough_is_not_the_short_one() -> None:
    world = columns(node("a", cpu=4, memory="2Gi"))
    found = refusal(world, group("w", 1, shape(cpu=4, memory="3Gi")))
    assert found.reason is Reason.NEVER_FITS
    assert found.message.startswith("w needs 3Gi memory on one node; the largest node that could ")


def test_pods_are_told_each_by_the_number_of_their_own_set() -> None:
    world, head = columns(node("a", cpu=4)), group("headgroup", 1, shape(cpu=1))
    several = refusal(world, head, group("w", 2, shape(cpu=9)))
    assert several.message.startswith("each w needs 9 cpu on one node")
    single = refusal(world, group("headgroup", 2, shape(cpu=1)), group("w", 1, shape(cpu=9)))
    assert single.message.startswith("w needs 9 cpu on one node")

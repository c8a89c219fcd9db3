"""What one moment adds to a shape is kept apart from what the pod says."""

from dataclasses import replace

import pytest

from scheduling.model.constraints import Requirement, VolumeNodeRestriction
from scheduling.model.pod import PodShape
from scheduling.model.shape import node_restrictions
from tests.builders import shape

ZONE_A = (Requirement("zone", "In", ("a",)),)
RACK_B = (Requirement("rack", "In", ("b",)),)
NOWHERE = (VolumeNodeRestriction("VolumeBinding", "claim", ()),)

PLAIN = shape(cpu=1, unsupported=("resource claims",))
ALL = [
    node_restrictions.beside_existing_pods(PLAIN, ZONE_A),
    node_restrictions.inside_domain(PLAIN, ZONE_A),
    node_restrictions.with_volumes(PLAIN, NOWHERE, {"attach:d": 2}, ("shared claim",)),
    node_restrictions.avoiding(PLAIN, ("n1",)),
]


@pytest.mark.parametrize("restricted", ALL)
def test_a_restriction_makes_another_shape_of_the_same_key(restricted: PodShape) -> None:
    """A placement names shapes by the key: it finds a pod by it whatever the moment adds."""
    assert restricted != PLAIN
    assert restricted.key == PLAIN.key
    assert restricted.scheduling_key != PLAIN.scheduling_key
    assert node_restrictions.lasting(restricted) == PLAIN


def test_what_the_pod_says_itself_is_in_the_key() -> None:
    """Another request or another constraint is another pod."""
    others = shape(cpu=2), replace(PLAIN, own_unsupported=()), replace(PLAIN, volumes=("claim",))
    assert len({PLAIN.key, *(each.key for each in others)}) == 4


def test_disks_and_constraints_of_volumes_count_like_those_of_the_pod() -> None:
    """Disks are requested, and what is not modelled of volumes keeps the gang waiting."""
    found = node_restrictions.with_volumes(PLAIN, (), {"attach:d": 2}, ("shared claim",))
    assert dict(found.requests) == {**dict(PLAIN.requests), "attach:d": 2}
    assert found.unsupported == ("resource claims", "shared claim")
    assert dict(node_restrictions.without_disks(found, {"attach:d": 1}).requests)["attach:d"] == 1
    assert node_restrictions.without_disks(found, {"attach:d": 2}).requests == PLAIN.requests


def test_domains_add_up_and_are_taken_off_together() -> None:
    """A replica's domain is inside that of its gang."""
    found = node_restrictions.inside_domain(ALL[1], RACK_B)
    assert found.restrictions.topology == ZONE_A + RACK_B
    assert node_restrictions.in_any_domain(found) == PLAIN
    assert node_restrictions.inside_domain(PLAIN, ()) is PLAIN


def test_the_labels_that_a_queue_asks_for_last() -> None:
    """They pass only when the queue is changed, unlike what existing pods or volumes add."""
    held = node_restrictions.on_nodes_of_queue(PLAIN, (("model", "a100"),))
    assert held.key == PLAIN.key
    assert held.scheduling_key != PLAIN.scheduling_key
    assert node_restrictions.lasting(node_restrictions.avoiding(held, ("n1",))) == held

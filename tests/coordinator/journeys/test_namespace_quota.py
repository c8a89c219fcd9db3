"""Gangs of a namespace whose ResourceQuota does not hold all of them."""

import pytest

from tests.coordinator.builders import gang_of, node
from tests.coordinator.namespace_quota import QuotaWorld, cpus_used

HOUR = 3600.0


def two_that_met() -> QuotaWorld:
    """Two gangs of 5 CPUs wait for the 8 of the quota; KubeRay tries the later one sooner."""
    world = QuotaWorld(8, node("n1", cpu=100), gang_of("x", 3))
    world.settle(seconds=10)
    world.create(gang_of("qa", 4))
    world.settle(seconds=1400)
    world.create(gang_of("qb", 4))
    world.settle(seconds=100)
    return world


def test_a_quota_refuses_the_pods_of_a_gang_that_are_beyond_it() -> None:
    world = two_that_met()
    assert (world.gated("qa"), world.gated("qb"), cpus_used(world.api)) == (4, 0, 8)
    assert world.status("qa")["reason"] == "PodsRefused"
    assert "exceeded quota: compute" in world.status("qa")["message"]


def test_a_gang_alone_starts_once_the_quota_has_room() -> None:
    world = two_that_met()
    world.delete("rayclusters", "qb")
    world.delete("rayclusters", "x")
    world.settle(seconds=HOUR)
    assert world.bound("qa") == {"n1": 5}


@pytest.mark.xfail(strict=True, reason="two gated gangs share a ResourceQuota for good")
def test_of_two_gangs_that_share_a_quota_the_first_starts_and_then_the_second() -> None:
    world = two_that_met()
    world.delete("rayclusters", "x")
    world.settle(seconds=HOUR)
    assert world.bound("qa") == {"n1": 5}
    world.delete("rayclusters", "qa")
    world.settle(seconds=HOUR)
    assert world.bound("qb") == {"n1": 5}

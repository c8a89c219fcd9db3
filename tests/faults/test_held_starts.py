"""A leader that ends between the resumption of a held RayCluster and its release does no harm."""

from __future__ import annotations

import pytest

from kube.objects import names
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group
from tests.faults.calls import is_release, is_resumption, of_lease
from tests.faults.chronicle import Chronicle
from tests.faults.crew import STEADY, Crew
from tests.faults.ledger import problems
from tests.faults.proxied import Match

REFUSED = {409, 422}
PODS = 3


def held() -> Json:
    cluster = gang("held", group(replicas=PODS - 1))
    cluster["metadata"]["annotations"] = {names.CREATE_PODS: names.CREATE_WHEN_ADMITTED}
    return cluster


@pytest.mark.variant
@pytest.mark.parametrize("write", [pytest.param(is_resumption, marks=pytest.mark.long), is_release])
def test_the_next_leader_goes_on_and_late_writes_are_refused(
    plot: Plot, chronicle: Chronicle, crew: Crew, write: Match
) -> None:
    """The first is hung with its resumption, or its first release, on the way.

    The other one may not take the Lease until then: on a busy machine it would lead instead.
    """
    one, other = crew.start(2, STEADY)
    leader, follower = (one, other) if crew.wait_leader() is one else (other, one)
    plot.add_node(PODS)
    too_early, hold = follower.proxy.refuse(500, of_lease), leader.proxy.hold(write)
    plot.create(held())
    wait_until(lambda: bool(hold.met), "the leader to send what is held")
    leader.process.pause()
    follower.proxy.lift(too_early)
    follower.wait_leads()
    plot.wait_running("held", PODS)
    generation = plot.get("RayCluster", "held")["metadata"]["generation"]
    assert plot.status("held")["held"]["phase"] == "Resumed"

    leader.proxy.lift(hold)
    wait_until(lambda: all(each.is_over for each in hold.met), "the late writes to be answered")
    assert {each.status for each in hold.met} <= REFUSED
    assert plot.get("RayCluster", "held")["metadata"]["generation"] == generation == 2
    assert not problems(chronicle.ledger, {plot.node("node"): PODS})
    leader.process.resume()

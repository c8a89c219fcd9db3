"""Two real members, asked by the rules of the protocol: each gang runs whole on one of them."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.cluster import Cluster
from testbed.muster import start_muster, with_muster
from testbed.options import Options
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group
from tests.dispatcher.asking import Asker
from tests.rights_plugin import MANIFESTS

pytestmark = [pytest.mark.controlplane, pytest.mark.long]

PODS = 3
"""Of a gang; each member has room for so many."""


@pytest.fixture
def members(tmp_path: Path) -> Iterator[dict[str, Plot]]:
    """Two clusters, each with KubeRay, a Muster of its own, and room for one gang."""
    found = {}
    with ExitStack() as stack:
        for name in ("east", "west"):
            options = Options(crds=(MANIFESTS / "member" / "crds" / "gangoffers.yaml",))
            cluster = stack.enter_context(Cluster.start(tmp_path / name, with_muster(options)))
            settings = {"GANG_OFFERS": "true"}
            start_muster(cluster, settings=settings, components=["member"])
            cluster.create_namespace("team")
            found[name] = Plot(cluster, "team")
            found[name].add_node(PODS)
        yield found


def running(members: dict[str, Plot]) -> dict[str, list[str]]:
    """By RayCluster the members on which any pod of it has a node."""
    found: dict[str, list[str]] = {}
    for member, plot in members.items():
        for each in plot.all("RayCluster"):
            name = each["metadata"]["name"]
            if plot.bound(name):
                found.setdefault(name, []).append(member)
    return found


def whole(members: dict[str, Plot], name: str) -> bool:
    return any(len(plot.bound(name)) == PODS for plot in members.values())


def test_of_three_gangs_two_run_and_the_third_says_why_for_each_and_follows(
    members: dict[str, Plot],
) -> None:
    selector = members["east"].selector
    askers = [Asker(members, held_to(name, selector)) for name in ("one", "two", "three")]

    def two_run() -> bool:
        for each in askers:
            each.go_on()
        now = running(members)
        assert all(len(where) == 1 for where in now.values()), now
        return sum(whole(members, each.name) for each in askers) == 2

    wait_until(two_run, "two gangs to run", seconds=240)
    (third,) = (each for each in askers if not whole(members, each.name))
    first = next(each for each in askers if each is not third)

    def says_why() -> bool:
        third.go_on()
        said = third.answers()
        return all(each.get("reason") == "InsufficientResources" for each in said.values())

    wait_until(says_why, "the third to wait on both", seconds=60, seen=third.answers)
    assert not any(plot.pods(third.name) for plot in members.values())
    assert len(running(members)) == 2

    member = members[first.record.cluster]
    member.delete("GangOffer", f"{first.name}-{first.record.attempt}")  # its user is done

    def follows() -> bool:
        third.go_on()
        now = running(members)
        assert all(len(where) == 1 for where in now.values()), now
        return whole(members, third.name)

    wait_until(follows, "the third to run", seconds=240, seen=third.answers)
    assert third.record.cluster == first.record.cluster


def held_to(name: str, selector: dict[str, str]) -> Json:
    """A gang whose templates say themselves which nodes are the plot's."""
    cluster = gang(name, group(replicas=PODS - 1))
    for each in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]):
        each["template"]["spec"]["nodeSelector"] = selector
    return cluster

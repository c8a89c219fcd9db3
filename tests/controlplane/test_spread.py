"""Gangs are spread over domains, and kube-scheduler accepts their pinned pods."""

from collections import Counter
from typing import Any

import pytest

from testbed.nodes import NodeSpec
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group


def spread(plot: Plot, **more: Any) -> Json:
    """A constraint over the plot's zones that counts workers; `maxSkew` is 1 if nothing is said."""
    return {
        "maxSkew": 1,
        "topologyKey": zone_key(plot),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"ray.io/group": "workers"}},
        **more,
    }


def zone_key(plot: Plot) -> str:
    """A label that no other plot's nodes have: they would be domains where the pin is ignored."""
    return f"zone-{plot.name}"


def add_zones(plot: Plot, **cpus: int) -> None:
    key = zone_key(plot)
    plot.add_nodes(*(NodeSpec(name, cpus=n, labels={key: name[0]}) for name, n in cpus.items()))


def zones(plot: Plot, count: int) -> Counter[str]:
    """Count the workers by zone, the first letter of their node's own name."""
    pods = plot.wait_pods("spread", count + 1)
    workers = [pod for pod in pods if pod["metadata"]["labels"]["ray.io/node-type"] == "worker"]
    return Counter(pod["spec"]["nodeName"].removeprefix(plot.node(""))[0] for pod in workers)


def test_workers_wait_for_room_in_the_zone_that_holds_least(plot: Plot) -> None:
    """The refusal names it; once it has room the gang starts, as even as it was asked to be."""
    add_zones(plot, a1=1, b1=9)
    plot.create(gang("spread", group(replicas=4, topologySpreadConstraints=[spread(plot)])))
    said = "a holds 1, so no zone-"
    plot.wait_phase("spread", "Queued", "NoFeasibleNode", said)
    add_zones(plot, a2=9)
    plot.wait_running("spread", 5)
    assert zones(plot, 4) == {"a": 2, "b": 2}


@pytest.mark.variant
def test_min_domains_let_pinned_pods_pass(plot: Plot) -> None:
    """One for each node: kube-scheduler would refuse a second one once it is pinned there."""
    add_zones(plot, a1=9, a2=9, b1=9, b2=9)
    plot.create(
        gang("spread", group(replicas=4, topologySpreadConstraints=[spread(plot, minDomains=2)]))
    )
    plot.wait_running("spread", 5)
    nodes = {pod["spec"]["nodeName"] for pod in plot.wait_pods("spread", 5)}
    assert nodes == {plot.node(name) for name in ("a1", "a2", "b1", "b2")}


@pytest.mark.variant
def test_a_constraint_that_ignores_the_pin_is_kept_in_whatever_order(plot: Plot) -> None:
    """kube-scheduler still judges each of them over all zones."""
    add_zones(plot, a1=9, b1=9, c1=9)
    constraint = spread(plot, nodeAffinityPolicy="Ignore", maxSkew=2)
    plot.create(gang("spread", group(replicas=6, topologySpreadConstraints=[constraint])))
    plot.wait_running("spread", 7)
    assert zones(plot, 6) == {"a": 2, "b": 2, "c": 2}

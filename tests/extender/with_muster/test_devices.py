"""Devices that a gang is to get are kept for it, though kube-scheduler takes the first that suit.

The gang is decided and its pods are still gated: nothing but its placement tells of its devices.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from extender.filter import DEVICES
from testbed.muster import Extender, Muster
from tests.controlplane.claimed_devices import (
    add_class,
    add_slice,
    add_template,
    asking,
    given,
    request,
)
from tests.controlplane.forbidden_releases import forbidden_releases
from tests.controlplane.plot import Plot, is_unschedulable, plotted
from tests.controlplane.rayclusters import Json, gang, group, pod
from tests.extender.with_muster.conftest import deciding, scheduling

pytestmark = pytest.mark.controlplane


@pytest.fixture
def plot(muster: Muster, extender: Extender) -> Iterator[Plot]:
    """Muster with a coordinator, and a scheduler that asks the extender."""
    with (
        deciding(muster, {"GUARD": "Extender"}),
        scheduling(muster, extender.scheduler_config()),
        plotted(muster.cluster, "devices") as plot,
    ):
        yield plot


def test_strangers_do_not_get_the_devices_that_a_gang_waits_for(plot: Plot) -> None:
    """They are told so, and get some as soon as some are left: nobody else would wake them."""
    plot.add_node(16)
    add_slice(plot, "node", ("gpu-0", "gpu-1"))
    add_template(plot, "one", request(add_class(plot)))
    numbers = itertools.count()
    with forbidden_releases(plot, "train"):
        plot.create(gang("train", group(replicas=2, **asking("one"))))
        plot.wait(lambda: plot.status("train").get("placement"), "a placement")
        # After a pause the extender is in doubt for a second, and says no more than that.
        plot.wait(lambda: DEVICES in refused(plot, f"stranger-{next(numbers)}"), "a reason")
        assert given(plot) == []
    plot.wait_running("train", 3)
    assert given(plot) == ["gpu-0", "gpu-1"]
    plot.delete_whole("train")
    plot.wait(lambda: given(plot), "a stranger to get a device")


def refused(plot: Plot, name: str) -> str:
    """Why a new stranger got no node."""
    plot.create(pod(name, **asking("one")))
    found: Json = plot.wait(
        lambda: each if is_unschedulable(each := plot.get("Pod", name)) else None, "a refusal"
    )
    said = found["status"]["conditions"]
    return "".join(each.get("message", "") for each in said if each["type"] == "PodScheduled")

"""Devices that a gang is to get are kept for it, though kube-scheduler takes the first that suit.

The gang is decided and its pods are still gated: nothing but its placement tells of its devices.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

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
from tests.controlplane.rayclusters import Json, gang, group, pod, requests
from tests.extender.with_muster.conftest import deciding, scheduling

pytestmark = pytest.mark.controlplane

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def whole(muster: Muster, extender: Extender) -> Iterator[Muster]:
    """Muster with a coordinator, and a scheduler that asks the extender."""
    config = extender.scheduler_config()
    with deciding(muster, {"GUARD": "Extender"}), scheduling(muster, config):
        yield muster


@pytest.fixture
def plot(whole: Muster) -> Iterator[Plot]:
    with plotted(whole.cluster, f"devices-{next(_NUMBERS)}") as plot:
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


@pytest.mark.long
def test_devices_that_a_class_gives_for_a_resource_are_kept_too(plot: Plot) -> None:
    """No node lists it: kube-scheduler asks for devices, one of which is left at first."""
    resource = f"{plot.name}.example.com/gpu"
    plot.add_node(16)
    add_slice(plot, "node", ("gpu-0", "gpu-1", "gpu-2"))
    add_template(plot, "one", request(add_class(plot, resource=resource)))
    main = {"name": "main", "image": "none", "resources": requests(**{resource: "1"})}
    numbers = itertools.count()
    with forbidden_releases(plot, "train"):
        plot.create(gang("train", group(replicas=2, **asking("one"))))
        plot.wait(lambda: plot.status("train").get("placement"), "a placement")
        plot.create(pod("first", containers=[main]))
        plot.wait(lambda: plot.get("Pod", "first")["spec"].get("nodeName"), "a device for it")
        plot.wait(
            lambda: DEVICES in refused(plot, f"stranger-{next(numbers)}", containers=[main]),
            "a reason",
        )
    plot.wait_running("train", 3)
    assert given(plot) == ["gpu-0", "gpu-1", "gpu-2"]


def refused(plot: Plot, name: str, **spec: Any) -> str:
    """Why a new stranger got no node."""
    plot.create(pod(name, **(spec or asking("one"))))
    found: Json = plot.wait(
        lambda: each if is_unschedulable(each := plot.get("Pod", name)) else None, "a refusal"
    )
    said = found["status"]["conditions"]
    return "".join(each.get("message", "") for each in said if each["type"] == "PodScheduled")

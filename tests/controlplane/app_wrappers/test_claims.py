"""AppWrappers whose pods claim devices: nothing exists before all of them have theirs."""

import pytest

from testbed.muster import Muster
from tests.controlplane.app_wrappers.conftest import start_all
from tests.controlplane.app_wrappers.test_whole import (
    create,
    wait_said,
    wrapper,
)
from tests.controlplane.claimed_devices import (
    add_class,
    add_slice,
    add_template,
    asking,
    given,
    request,
)
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import cluster_spec, group, ray_cluster


@pytest.fixture(scope="module")
def muster(own: Muster) -> Muster:
    """All programs."""
    return start_all(own)


@pytest.mark.variant
def test_one_starts_when_its_devices_are_free_and_says_what_it_lacks(
    plot: Plot, muster: Muster
) -> None:
    plot.add_node(16)
    add_slice(plot, "node", ("gpu-0", "gpu-1"))
    of_class = add_class(plot)
    add_template(plot, "one", request(of_class))
    for name in ("first", "second"):
        spec = cluster_spec(group("w", 2, **asking("one")))
        create(plot, wrapper(name, {**ray_cluster(name), "spec": spec}))
        if name == "first":
            plot.wait_ready("first", 3)
    wait_said(plot, "second", of_class)
    assert len(given(plot)) == 2
    assert {each["metadata"]["name"] for each in plot.all("RayCluster")} == {"first"}
    plot.delete("AppWrapper", "first")
    plot.wait_ready("second", 3)
    assert len(given(plot)) == 2

"""AppWrappers, RayJobs and Ray clusters that share one ResourceQuota start one after another."""

from __future__ import annotations

import pytest

from testbed.muster import Muster
from tests.controlplane.app_wrappers.conftest import start_all
from tests.controlplane.app_wrappers.test_whole import create, job, status, wrapper
from tests.controlplane.plot import Plot
from tests.controlplane.quotas import add_quota
from tests.controlplane.rayclusters import GANG, gang, group, ray_job

WORKERS = 4
LONG = 180.0

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def muster(own: Muster) -> Muster:
    """All programs."""
    return start_all(own)


def ends(plot: Plot, name: str) -> bool:
    """End a gang that runs whole, or is over; say whether it started.

    An AppWrapper that is over is deleted too, for `count/pods` counts its pods until then.
    """
    if name.startswith("wrapped"):
        found = status(plot, name)
        if found.get("phase") != "Succeeded":
            return False
        assert found.get("resettingCount", 0) == 0, found
        plot.delete("AppWrapper", name)
        return True
    kind = "RayJob" if name.startswith("job") else "RayCluster"
    cluster = name if kind == "RayCluster" else _cluster_of(plot, name)
    if len(plot.bound(cluster)) < WORKERS + 1:
        return False
    plot.delete(kind, name)
    return True


def run_all(plot: Plot, names: list[str]) -> None:
    """Wait until each has started, and is over."""
    left = set(names)

    def some_end() -> bool:
        done = {name for name in left if ends(plot, name)}
        left.difference_update(done)
        return bool(done)

    while left:
        plot.wait(some_end, f"one of {sorted(left)} to start", seconds=LONG)


def _cluster_of(plot: Plot, name: str) -> str:
    return str(plot.get("RayJob", name).get("status", {}).get("rayClusterName", ""))


@pytest.mark.parametrize("kind", ["pods", "count/pods"])
def test_gangs_of_every_kind_run_one_after_another(plot: Plot, kind: str) -> None:
    """Each has 5 pods, or 6 with a submitter; the quota is for 8."""
    plot.add_node(30)
    add_quota(plot, "small", {kind: 8})
    names = []
    for at in range(3):
        create(plot, wrapper(f"wrapped-{at}", job(f"work-{at}", WORKERS + 1, WORKERS + 1)))
        plot.create(ray_job(f"job-{at}", group(replicas=WORKERS), labels=GANG))
        plot.create(gang(f"cluster-{at}", group(replicas=WORKERS)))
        names += [f"wrapped-{at}", f"job-{at}", f"cluster-{at}"]
    run_all(plot, names)

"""Ray's own autoscaler asks for workers that do not fit yet: a real head and autoscaler of Ray."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testbed.muster import Muster
from testbed.nodes import NodeSpec
from testbed.ray_nodes import missing
from testbed.ray_runtime import Asked, RayRuntime
from tests.controlplane.plot import PLENTY, Plot, condition, is_held
from tests.controlplane.rayclusters import gang, group
from tests.controlplane.test_running import minimums

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]

GIVES_UP = 20
"""Seconds after which the autoscaler ends a pod that no node of Ray runs on; its default is 300."""
ENVIRONMENT = {
    "AUTOSCALER_UPDATE_INTERVAL_S": "1",
    "RAY_AUTOSCALER_RECONCILE_ALLOCATE_STATUS_TIMEOUT_S": str(GIVES_UP),
}
IDLE = {"idleTimeoutSeconds": 10}


@contextmanager
def scaled(plot: Plot, cpus: str, hosts: int = 1) -> Iterator[RayRuntime]:
    """A gang of one replica at least, with the Ray that it would run, on one node."""
    plot.add_node(cpus)
    workers = group(replicas=1, least=1, hosts=hosts)
    plot.create(gang("a", workers, enableInTreeAutoscaling=True, autoscalerOptions=IDLE))
    plot.wait_running("a", 1 + hosts)
    with RayRuntime(plot.cluster, plot.name, "a", ENVIRONMENT) as ray:
        yield ray
        ray.expect_running()


def workers(plot: Plot, *, held: bool) -> set[str]:
    """The names of the workers with our gate, or of those without."""
    return {pod["metadata"]["name"] for pod in plot.pods("a", "worker") if is_held(pod) is held}


def wait_seen(plot: Plot, ray: RayRuntime, running: set[str], pending: int) -> None:
    """Wait until Ray has a node for each of these workers, and so many pods without one."""

    def there() -> bool:
        seen = ray.seen()
        nodes = set(seen["running"]) - {pod["metadata"]["name"] for pod in plot.pods("a", "head")}
        return (nodes, seen["pending"], seen["requested"]) == (running, pending, 0)

    plot.wait(there, f"Ray to run on {sorted(running)}, and to wait for {pending} pods")


def wait_given_up(plot: Plot, ray: RayRuntime) -> tuple[Asked, Asked, Asked]:
    """Wait until pods were given up and asked for again: what was asked before, then, and after."""

    def ends() -> list[int]:
        ray.expect_running()
        return [at for at, each in enumerate(ray.asked[:-1]) if at and each.deleted]

    at = plot.wait(ends, "the autoscaler to give up what it asked for, and to ask again")[0]
    return ray.asked[at - 1], ray.asked[at], ray.asked[at + 1]


def wait_one_replica_waits(plot: Plot, hosts: int) -> None:
    """Wait until all pods of two replicas run, and those of the third are behind our gate."""

    def waits() -> bool:
        return (len(workers(plot, held=False)), len(workers(plot, held=True))) == (2 * hosts, hosts)

    plot.wait(waits, "two replicas to be released, and all of the third to wait")


def wait_refused(plot: Plot, pods: int) -> None:
    """Wait until the Gang says that these pods of its surplus wait for room."""
    status = plot.wait_message("a", f"of {pods} workers fit")
    told = condition(status, "SurplusPlaced")
    assert (told["status"], told["reason"]) == ("False", "InsufficientResources")


@pytest.mark.parametrize(("hosts", "cpus"), [(1, "3500m"), (2, "6500m")], ids=["one", "two"])
def test_rays_autoscaler_gives_up_what_waits_and_asks_again(
    plot: Plot, muster: Muster, hosts: int, cpus: str
) -> None:
    """Two replicas fit beside the head; of the third no host does, or one of two.

    The autoscaler takes gated pods for nodes that start. It gives up just these after its timeout,
    and asks for as many in the same breath. Nothing that runs is touched.
    """
    with scaled(plot, cpus, hosts) as ray:
        ray.request(3 * hosts, CPU=1)
        wait_one_replica_waits(plot, hosts)
        first, running = workers(plot, held=True), workers(plot, held=False)
        wait_refused(plot, hosts)
        wait_seen(plot, ray, running, hosts)

        before, given_up, after = wait_given_up(plot, ray)
        assert (before.replicas, given_up.replicas, after.replicas) == (3, 2, 3)
        assert (set(given_up.deleted), after.deleted) == (first, ())
        assert given_up.time - before.time >= GIVES_UP
        wait_one_replica_waits(plot, hosts)
        assert (workers(plot, held=False), workers(plot, held=True) & first) == (running, set())
        wait_refused(plot, hosts)

        plot.add_nodes(NodeSpec("more", cpus=hosts, memory=PLENTY))
        plot.wait_running("a", 1 + 3 * hosts)
        assert workers(plot, held=False) > running
        wait_seen(plot, ray, workers(plot, held=False), 0)

        plot.create(gang("next", group(replicas=2 * hosts - 1)))
        plot.wait_phase("next", "Queued", "InsufficientResources")
        ray.request(0)
        plot.wait_running("next", 2 * hosts)  # no slot is kept for a worker that Ray ended
        plot.wait(lambda: minimums(plot, "a")["workers"] == (hosts, hosts), "one replica to stay")
        assert (ray.asked[-1].replicas, len(ray.asked[-1].deleted)) == (1, 2 * hosts)
        assert plot.status("a")["phase"] == "Running"

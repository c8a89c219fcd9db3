"""While the webhook is down Ray pods wait, and no other pod does."""

import pytest

from kube.objects import names
from testbed.errors import TestbedError
from testbed.muster import Muster
from tests.controlplane.plot import Plot, gates, is_held, is_ready
from tests.controlplane.rayclusters import gang, group, pod, ray_cluster


def test_ray_pods_wait_for_the_webhook_and_no_others_do(plot: Plot, webhook_down: Muster) -> None:
    """No Ray pod slips through without its gate, and KubeRay tries again by itself."""
    plot.add_node(4)
    plot.create(gang("waits", group(replicas=2)))
    plot.wait_phase("waits", "Gathering", "PodsRefused", "gate.muster.dev")
    assert gates(plot.create(pod("plain"))) == []
    plot.wait(lambda: is_ready(plot.get("Pod", "plain")), "the plain pod to be ready")
    assert plot.pods("waits") == []
    webhook_down.webhook.restart()
    webhook_down.wait_ready()
    plot.wait_running("waits", 3)


@pytest.mark.variant
def test_a_running_gang_and_a_waiting_one_do_not_need_the_webhook(
    plot: Plot, muster: Muster
) -> None:
    """Once pods exist, release is a matter between the coordinator and the API server."""
    plot.add_node(3)
    plot.create(gang("first", group(replicas=2)))
    plot.wait_running("first", 3)
    plot.create(gang("second", group(replicas=2)))
    plot.wait_phase("second", "Queued", "InsufficientResources")
    assert all(is_held(each) for each in plot.pods("second"))
    muster.webhook.stop()
    try:
        plot.delete("RayCluster", "first")
        plot.wait_running("second", 3)
    finally:
        muster.webhook.restart()
        muster.wait_ready()


@pytest.mark.variant
def test_only_rayclusters_with_state_in_redis_wait_for_the_webhook(
    plot: Plot, webhook_down: Muster
) -> None:
    """Those that run are scaled, for that changes nothing the webhook is asked about."""
    plot.add_node(4)
    labels = {names.HEAD_FAULT_TOLERANCE: names.BUILT_IN}
    webhook_down.webhook.restart()
    webhook_down.wait_ready()
    plot.create(ray_cluster("safe", group(replicas=1), labels=labels))
    webhook_down.webhook.stop()
    with pytest.raises(TestbedError, match=r"protect\.muster\.dev"):
        plot.create(ray_cluster("refused", group(), labels=labels))
    plot.create(ray_cluster("plain", group()))
    plot.scale("safe", replicas=2)
    plot.delete("RayCluster", "safe")

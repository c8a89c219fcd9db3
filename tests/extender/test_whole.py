"""Does a gang bind whole after a burst of others, while its releases are held up?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from kube import names
from testbed.cluster import Cluster
from testbed.muster import Extender, Muster, start_extender, start_muster, with_muster
from testbed.options import Options
from tests.controlplane.rayclusters import group, head, ray_cluster
from tests.extender.plot import LABEL, QUICK, Plot
from tests.extender.worlds import pod
from tests.faults.proxy import Call, Proxy

pytestmark = pytest.mark.controlplane

WORKERS = 11


def is_release(call: Call) -> bool:
    """Whether the request takes our gate off a pod."""
    patches_a_pod = call.method == "PATCH" and "/pods/" in call.path
    return patches_a_pod and any(each["op"] == "remove" for each in call.content)


@pytest.fixture
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Extender, Proxy]]:
    directory = tmp_path_factory.mktemp("whole") / "root"
    with Cluster.start(directory, with_muster(Options(scheduler=False))) as cluster:
        extender = start_extender(cluster, settings=QUICK)
        cluster.start_scheduler(extender.scheduler_config())
        with Proxy(cluster.server, cluster.ca_file) as proxy:
            _through(proxy, cluster)
            yield cluster, extender, proxy


def _through(proxy: Proxy, cluster: Cluster) -> Muster:
    """Start Muster with its coordinator behind the proxy."""
    muster = start_muster(cluster)
    muster.coordinators[0].kill()
    own = cluster.service_account_kubeconfig("muster-system", "muster-coordinator")
    muster.start_coordinator(proxy.kubeconfig(own, cluster.directory / "proxy.kubeconfig"))
    muster.wait_ready()
    muster.wait_led()
    return muster


def test_a_gang_binds_whole_after_a_burst(running: tuple[Cluster, Extender, Proxy]) -> None:
    cluster, extender, proxy = running
    plot = Plot(cluster, extender, "whole")
    plot.add_nodes(WORKERS + 1)
    held = proxy.hold(is_release)
    _create_gang(plot)
    plot.wait(
        lambda: extender.metric("muster_extender_reserved_pods") == WORKERS + 1,
        "the placement to be known",
    )
    fillers = [pod(f"f{i}", gpu=1 + i % 4) for i in range(100)]
    plot.create_all(fillers)
    plot.wait_judged(len(fillers))
    assert plot.bound()  # what is not reserved was for them
    seats = _seats(plot)
    assert all(plot.gpus()[node] + reserved <= 8 for node, reserved in seats.items())
    proxy.lift(held)
    plot.wait(lambda: len(_members(plot)) == WORKERS + 1, "the gang to be bound whole")


def _create_gang(plot: Plot) -> None:
    wanted = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "4"}
    resources = {"requests": wanted, "limits": {"nvidia.com/gpu": "4"}}
    selector = {LABEL: plot.name}
    workers = group(replicas=WORKERS, most=WORKERS, resources=resources, nodeSelector=selector)
    marks = {names.OPT_IN: "true"}
    made = ray_cluster("train", workers, labels=marks, head_group=head(nodeSelector=selector))
    path = f"/apis/ray.io/v1/namespaces/{plot.name}/rayclusters"
    plot.cluster.api.create(path, made)


def _seats(plot: Plot) -> Counter[str]:
    """The GPUs that the gang's placement reserves, node by node."""
    path = f"/apis/{names.API_VERSION}/namespaces/{plot.name}/gangs/train"
    reserved: Counter[str] = Counter()
    for pod_set in plot.cluster.api.get(path)["status"]["placement"]["podSets"]:
        for each in pod_set["assignments"]:
            for node, count in each["nodes"].items():
                reserved[node] += count * int(each["requests"].get("nvidia.com/gpu", 0))
    return reserved


def _members(plot: Plot) -> list[str]:
    return [name for name in plot.bound() if name.startswith("train-")]

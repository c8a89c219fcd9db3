"""Do gangs run on a scheduler of their own, with what it adds to what their pods ask for?

The scheduler is the second one of the manifests, the extender beside it; there is no other.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator

import pytest

from testbed.cluster import Cluster
from testbed.muster import start_extender, start_muster, with_muster
from testbed.nodes import NodeSpec
from testbed.options import Options
from tests.controlplane.plot import Plot, is_held, plotted
from tests.controlplane.rayclusters import Json, gang, group, head

_NUMBERS = itertools.count(1)
SECOND = "muster-scheduler"
RAY_NODES = {"pool": "ray"}
TERM = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["ray"]}]}
ADDED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}
ZONES = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
SPREAD = {"defaultingType": "List", "defaultConstraints": [ZONES]}
PROFILE = {
    "schedulerName": SECOND,
    "pluginConfig": [
        {"name": "NodeAffinity", "args": {"addedAffinity": ADDED}},
        {"name": "PodTopologySpread", "args": SPREAD},
    ],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of its own: what a coordinator decides for is set at its start."""
    directory = tmp_path_factory.mktemp("profiles") / "root"
    with Cluster.start(directory, with_muster(Options(scheduler=False))) as cluster:
        extender = start_extender(cluster)
        config = extender.scheduler_config("second-scheduler")
        assert [each["schedulerName"] for each in config["profiles"]] == [SECOND]
        alone = {"leaderElect": False}  # it runs under the account of the first, not its own
        cluster.start_scheduler({**config, "profiles": [PROFILE], "leaderElection": alone})
        start_muster(cluster, settings={"PROFILES": json.dumps([PROFILE])})
        yield cluster


@pytest.fixture
def plot(cluster: Cluster) -> Iterator[Plot]:
    with plotted(cluster, f"profiles-{next(_NUMBERS)}") as plot:
        yield plot


def in_zone(name: str) -> dict[str, str]:
    return {**RAY_NODES, "zone": name}


def on_second(name: str, replicas: int) -> Json:
    workers = group(replicas=replicas, schedulerName=SECOND)
    return gang(name, workers, head_group=head(schedulerName=SECOND))


def service(name: str, selector: dict[str, str]) -> Json:
    spec = {"selector": selector, "clusterIP": "None"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def test_a_gang_of_the_second_scheduler_runs_where_that_one_lets_it(plot: Plot) -> None:
    """The roomier node is not for pods of this scheduler, and a gang that needs it waits whole."""
    plot.add_nodes(
        NodeSpec("ray", cpus=3, labels=in_zone("east")),
        NodeSpec("other", cpus=64, memory="512Gi"),
    )
    plot.create(on_second("large", 4))
    said = "1 does not match the affinity that the scheduler adds"
    plot.wait_phase("large", "Queued", "NeverFits", said)
    assert all(is_held(pod) for pod in plot.wait_pods("large", 5))
    plot.create(on_second("small", 2))
    plot.wait_running("small", 3)
    assert set(plot.bound("small").values()) == {"ray"}


def test_workers_that_a_service_selects_are_spread_over_zones(plot: Plot) -> None:
    """Neither they nor the Service say so: the profile does. The node that is not ready yet makes
    the gang one that waits."""
    coming = ["node.cloudprovider.kubernetes.io/uninitialized:NoSchedule"]
    plot.add_nodes(
        NodeSpec("bare", cpus=1, labels=RAY_NODES),
        NodeSpec("east1", cpus=1, labels=in_zone("east")),
        NodeSpec("new", cpus=9, labels=RAY_NODES, taints=coming),
    )
    plot.create(on_second("spread", 4))
    plot.wait_message("spread", "1 of 4 workers fit beside headgroup")
    plot.create(service("workers", {"ray.io/cluster": "spread", "ray.io/group": "workers"}))
    plot.wait_message("spread", "1 is in no domain of a topology spread constraint")
    plot.add_nodes(
        NodeSpec("east2", cpus=9, labels=in_zone("east")),
        NodeSpec("west1", cpus=1, labels=in_zone("west")),
    )
    plot.wait_message("spread", "west holds 1, so that none may hold over 2")
    plot.add_nodes(NodeSpec("west2", cpus=9, labels=in_zone("west")))
    plot.wait_running("spread", 5)
    zones = Counter(node[:4] for node in plot.bound("spread", "worker").values())
    assert zones == {"east": 2, "west": 2}


def test_a_gang_of_a_scheduler_without_a_profile_is_unsupported(plot: Plot) -> None:
    plot.create(gang("stock", group(replicas=1)))
    plot.wait_phase("stock", "Queued", "Unsupported", "schedulerName default-scheduler")

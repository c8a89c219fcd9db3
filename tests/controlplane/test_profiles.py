"""Do gangs run on a scheduler of their own, with what it adds to what their pods ask for?

The scheduler is the second one of the manifests, the extender beside it; there is no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from testbed.cluster import Cluster
from testbed.muster import start_extender, start_muster, with_muster
from testbed.nodes import NodeSpec
from testbed.options import Options
from tests.controlplane.plot import Plot, condition, is_held
from tests.controlplane.rayclusters import Json, gang, group, head

SECOND = "muster-scheduler"
RAY_NODES = {"pool": "ray"}
TERM = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["ray"]}]}
ADDED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}
PROFILE = {
    "schedulerName": SECOND,
    "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": ADDED}}],
}


@pytest.fixture(scope="module")
def plot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plot]:
    """A cluster of its own: what a coordinator decides for is set at its start."""
    directory = tmp_path_factory.mktemp("profiles") / "root"
    with Cluster.start(directory, with_muster(Options(scheduler=False))) as cluster:
        extender = start_extender(cluster)
        config = extender.scheduler_config("second-scheduler")
        assert [each["schedulerName"] for each in config["profiles"]] == [SECOND]
        alone = {"leaderElect": False}  # it runs under the account of the first, not its own
        cluster.start_scheduler({**config, "profiles": [PROFILE], "leaderElection": alone})
        start_muster(cluster, settings={"PROFILES": json.dumps([PROFILE])})
        plot = Plot(cluster, "profiles")
        cluster.create_namespace(plot.name)
        plot.add_nodes(
            NodeSpec("ray", cpus=3, labels=RAY_NODES), NodeSpec("other", cpus=64, memory="512Gi")
        )
        yield plot


def on_second(name: str, replicas: int) -> Json:
    workers = group(replicas=replicas, schedulerName=SECOND)
    return gang(name, workers, head_group=head(schedulerName=SECOND))


def test_a_gang_of_the_second_scheduler_runs_where_that_one_lets_it(plot: Plot) -> None:
    """The roomier node is not for pods of this scheduler, and a gang that needs it waits whole."""
    plot.create(on_second("large", 4))
    status = plot.wait_phase("large", "Queued", "InsufficientResources")
    message = condition(status, "Admitted")["message"]
    assert "1 does not match the affinity that the scheduler adds" in message
    assert all(is_held(pod) for pod in plot.wait_pods("large", 5))
    plot.create(on_second("small", 2))
    plot.wait_running("small", 3)
    assert set(plot.bound("small").values()) == {"ray"}


def test_a_gang_of_a_scheduler_without_a_profile_is_unsupported(plot: Plot) -> None:
    plot.create(gang("stock", group(replicas=1)))
    status = plot.wait_phase("stock", "Queued", "Unsupported")
    assert "schedulerName default-scheduler" in condition(status, "Admitted")["message"]

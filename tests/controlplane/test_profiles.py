"""Gangs run on a scheduler of their own, with the affinity that its profile adds.

The scheduler is the second one of the manifests, the extender beside it; there is no other.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest

from testbed.cluster import Cluster
from testbed.muster import start_extender, start_muster, with_muster
from testbed.nodes import NodeSpec
from testbed.options import Options
from tests.controlplane.plot import Plot, is_held, plotted
from tests.controlplane.rayclusters import Json, gang, group, head

pytestmark = pytest.mark.long

_NUMBERS = itertools.count(1)
SECOND = "muster-scheduler"
RAY_NODES = {"pool": "ray"}
TERM = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["ray"]}]}
ADDED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}
ZONES = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
SCORING = {**ZONES, "whenUnsatisfiable": "ScheduleAnyway"}
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


def on_second(name: str, replicas: int, *constraints: Json) -> Json:
    """A gang with these topology spread constraints in its pods."""
    spec: Json = {"schedulerName": SECOND, "topologySpreadConstraints": list(constraints)}
    return gang(name, group(replicas=replicas, **spec), head_group=head(**spec))


def test_a_gang_of_the_second_scheduler_runs_where_that_one_lets_it(plot: Plot) -> None:
    """The roomier node is not for pods of this scheduler, and a gang that needs it waits whole.
    Constraints of their own, if they only score, keep the profile's default ones off the pods."""
    plot.add_nodes(
        NodeSpec("ray", cpus=3, labels=in_zone("east")),
        NodeSpec("other", cpus=64, memory="512Gi"),
    )
    plot.create(on_second("large", 4, SCORING))
    said = "1 does not match the scheduler's addedAffinity"
    plot.wait_phase("large", "Queued", "NeverFits", said)
    assert all(is_held(pod) for pod in plot.wait_pods("large", 5))
    plot.create(on_second("small", 2, SCORING))
    plot.wait_running("small", 3)
    assert set(plot.bound("small").values()) == {"ray"}


def test_pods_that_only_the_profile_spreads_are_unsupported(plot: Plot) -> None:
    plot.add_nodes(NodeSpec("roomy", cpus=9, labels=in_zone("east")))
    plot.create(on_second("bound", 1))
    plot.wait_phase("bound", "Queued", "Unsupported", "default topology spread constraints")


def test_a_gang_of_a_scheduler_without_a_profile_is_unsupported(plot: Plot) -> None:
    plot.create(gang("stock", group(replicas=1)))
    plot.wait_phase("stock", "Queued", "Unsupported", "schedulerName default-scheduler")

"""Fixtures of the tests on the real control plane.

One cluster with KubeRay and Muster for all of them, and for each test a plot: a namespace and nodes
of its own.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.cluster import Cluster
from testbed.muster import Muster, start_muster, with_muster
from testbed.options import Options
from testbed.recipes import chosen_kuberay
from testbed.recorder import Recorder
from testbed.waiting import wait_until
from tests.controlplane.dashboards import Dashboards
from tests.controlplane.plot import Plot, plotted
from tests.controlplane.provisioning import definition
from tests.controlplane.redis_users import KEY, PASSWORD
from tests.headstate.resp import FakeRedis, fake_redis
from tests.rights_plugin import MANIFESTS

_HERE = Path(__file__).parent
_NUMBERS = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs the control plane."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.controlplane)


def cron_jobs() -> tuple[str, ...]:
    """What switches RayCronJobs on, which are alpha; older releases of KubeRay have none."""
    with_them = chosen_kuberay().startswith("1.6")
    return ("--feature-gates=RayCronJob=true",) if with_them else ()


@pytest.fixture(scope="session")
def dashboards() -> Iterator[Dashboards]:
    """The dashboards of Ray heads, as KubeRay reaches them; they answer for the plots that ask."""
    with Dashboards() as dashboards:
        yield dashboards


@pytest.fixture(scope="session")
def muster(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    dashboards: Dashboards,
) -> Iterator[Muster]:
    """One cluster with Muster running, under exactly the rights that its manifests give it."""
    options = Options(
        kuberay_args=("--reconcile-concurrency=4", *cron_jobs()),
        kuberay_env=dashboards.environment,
        users={"muster": (), "tenant": (), "owner": (), "queues": ()},
        crds=(
            definition(tmp_path_factory.mktemp("crds") / "provisioningrequests.yaml"),
            MANIFESTS / "member" / "crds" / "gangoffers.yaml",
            MANIFESTS / "dispatcher" / "crds" / "memberclusters.yaml",
        ),
    )
    directory = tmp_path_factory.mktemp("controlplane") / "root"
    with Cluster.start(directory, with_muster(options)) as cluster:
        settings = {"PROVISIONING": "true", "GANG_OFFERS": "true", "DISPATCH": "true"}
        components = ["provisioning", "redis", "member"]
        yield start_muster(cluster, settings=settings, components=components)
    cluster.remove_data()
    if not request.session.testsfailed:
        shutil.rmtree(directory)


@pytest.fixture
def plot(muster: Muster) -> Iterator[Plot]:
    """A namespace and nodes of one test's own."""
    with plotted(muster.cluster, f"plot-{next(_NUMBERS)}") as plot:
        yield plot


@pytest.fixture
def recorder(muster: Muster) -> Iterator[Recorder]:
    """What happens to pods while a test runs."""
    with Recorder(muster.cluster) as recorder:
        yield recorder


@pytest.fixture
def webhook_down(muster: Muster) -> Iterator[Muster]:
    """The webhook stopped; it is back at the latest when the test ends."""
    muster.webhook.stop()
    yield muster
    if not muster.webhook.running:
        muster.webhook.restart()
    muster.wait_ready()


@pytest.fixture(scope="module")
def redis() -> Iterator[FakeRedis]:
    """Servers of the tests' own that speak as much of Redis as is asked for."""
    with fake_redis() as found:
        found.password = PASSWORD
        yield found


@pytest.fixture(scope="module")
def users(
    muster: Muster, redis: FakeRedis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """The program runs; the folder is where its keys are mounted, once they are there."""
    folder = tmp_path_factory.mktemp("keys")
    settings = {
        "SERVERS": json.dumps(redis.servers),
        "SENTINELS": json.dumps(redis.sentinels),
        "KEY_DIRECTORY": str(folder),
        "LOOK_SECONDS": "0.2",
    }
    process = muster.start_redis_users(settings)
    secret = "/api/v1/namespaces/muster-system/secrets/muster-redis-keys"
    wait_until(lambda: muster.cluster.api.exists(secret), "the program to make keys")
    (folder / "password").write_text(PASSWORD)
    (folder / "key").write_text(KEY)
    muster.wait_led("redis")
    yield folder
    process.stop()

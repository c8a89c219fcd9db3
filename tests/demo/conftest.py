"""Where do the scenes play in tests: on one cluster with Muster for all of them."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator

import pytest

from demo.display import Lines
from demo.stage import Stage
from demo.world import World
from testbed import muster
from testbed.cluster import Cluster


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """A stage without a viewer; the logs stay when a test fails."""
    directory = tmp_path_factory.mktemp("demo") / "cluster"
    failed = request.session.testsfailed
    with Cluster.start(directory, muster.with_app_wrappers()) as cluster:
        muster.start_with_app_wrappers(cluster)
        with World(cluster) as world:
            yield Stage(cluster, world, Lines(io.StringIO()))
    cluster.remove_data()
    if request.session.testsfailed == failed:
        shutil.rmtree(directory)

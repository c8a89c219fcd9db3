"""Fixtures of the tests of the testbed on clusters that run: two of them, for all files here."""

from __future__ import annotations

import pytest

from testbed.cluster import Cluster
from testbed.options import Options
from testbed.pytest_plugin import FolderCluster

SMALL = Options(kuberay=False, users={"tenant": ("team-a",)})


@pytest.fixture
def whole(folder_cluster: FolderCluster) -> Cluster:
    """A cluster with KubeRay, for tests that keep to namespaces of their own."""
    return folder_cluster(Options())


@pytest.fixture
def small(folder_cluster: FolderCluster) -> Cluster:
    """One without KubeRay, with a user; tests may stop its programs if they start them again."""
    return folder_cluster(SMALL)

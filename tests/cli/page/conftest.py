"""The page in the cluster and on a laptop, with a RayCluster that ada may change."""

from collections.abc import AsyncIterator

import pytest

from cli.write import writer
from kube.objects import names
from tests.cli.managing.clusters import cluster as ray_cluster
from tests.cli.page.people import ADA, BEN, SECRET, People, Tab, in_cluster, on_laptop, tab


@pytest.fixture
def people(monkeypatch: pytest.MonkeyPatch) -> People:
    """A cluster with a RayCluster `train`; nothing here waits before it asks again."""
    monkeypatch.setattr(writer, "PAUSE", 0.001)
    found = People()
    train = ray_cluster("train")
    found.add("rayclusters", "train", "team", kind="RayCluster", spec=train["spec"])
    found.get("rayclusters", "train", "team")["metadata"]["labels"] = {names.OPT_IN: "true"}
    found.add("gangqueues", "research", kind="GangQueue", spec={"quota": {"cpu": "8"}})
    return found


@pytest.fixture
async def origin(people: People) -> AsyncIterator[str]:
    """Where the page of the cluster is."""
    async with in_cluster(people) as (_, found):
        yield found


@pytest.fixture
async def ada(origin: str) -> AsyncIterator[Tab]:
    async with tab(origin, ADA) as found:
        yield found


@pytest.fixture
async def ben(origin: str) -> AsyncIterator[Tab]:
    async with tab(origin, BEN) as found:
        yield found


@pytest.fixture
async def laptop(people: People) -> AsyncIterator[Tab]:
    """The page of a laptop, with the secret of its start."""
    async with on_laptop(people) as (_, found), tab(found, secret=SECRET) as made:
        yield made

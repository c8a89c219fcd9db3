"""A keeper of certificates and its clock, for the tests beside it."""

from __future__ import annotations

import pytest

from certs.cluster import Cluster
from certs.keeper import Keeper, OfWebhook
from kube.api.client import Client
from tests.certs.api import Api
from tests.certs.keeper.kept import PLACE, Clock
from tests.certs.world import WANTED


@pytest.fixture
def clock(api: Api) -> Clock:
    clock = Clock()
    api.clock = clock
    return clock


@pytest.fixture
def cluster(client: Client) -> Cluster:
    return Cluster(client, PLACE)


@pytest.fixture
def keeper(cluster: Cluster, clock: Clock) -> Keeper:
    return Keeper(cluster, OfWebhook(WANTED), now=clock)

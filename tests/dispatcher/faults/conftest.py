"""One set of control planes for all cases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dispatcher.faults.stand import Stand, standing


@pytest.fixture(scope="session")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """The manager and its members."""
    with standing(tmp_path_factory.mktemp("faults")) as found:
        yield found


@pytest.fixture
def stand(clusters: Stand) -> Iterator[Stand]:
    """The same, with nothing left of the case when it is over, and of the one before."""
    clusters.rest()
    clusters.witness.findings.clear()
    yield clusters
    clusters.rest()

"""Asks `muster fit` about a Ray cluster, and then creates that one."""

import copy
from collections.abc import Iterable

from tests.cli.fitting.reader import answer
from tests.coordinator.builders import Json
from tests.coordinator.world import World


def asked_and_created(
    objects: Iterable[Json], running: Iterable[Json], cluster: Json
) -> tuple[Json, World]:
    """Return what was answered, which changed nothing, and the world half a minute later."""
    there = World(*copy.deepcopy(list(objects)))
    for each in copy.deepcopy(list(running)):
        there.create(each)
        there.settle(seconds=5)
    before = len(there.api.history)
    found = answer(there, copy.deepcopy(cluster))
    assert len(there.api.history) == before, "it changed something"
    there.create(copy.deepcopy(cluster))
    there.settle(seconds=30)
    return found, there

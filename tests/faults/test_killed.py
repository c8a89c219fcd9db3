"""Every gang ends whole when the coordinators are killed again and again, at any moment."""

from __future__ import annotations

import random

import pytest

from testbed.muster import Muster, wait_app_wrappers_trusted
from tests.controlplane.plot import Plot
from tests.faults.chronicle import Chronicle
from tests.faults.crew import Crew
from tests.faults.ledger import never_whole, problems, taken_over
from tests.faults.traffic import GANG_SECONDS, Killer, Restarts, Traffic, WrapperTraffic

NODES, CPUS = 5, 2
ROOM = {f"n-{number}": CPUS for number in range(NODES)}
LONG = [pytest.mark.long, pytest.mark.timeout(1800)]
SHORT = [pytest.mark.timeout(900)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("replicas", "gangs", "kills", "seed"),
    [
        pytest.param(1, 6, 5, 1, id="alone", marks=LONG),
        pytest.param(2, 6, 5, 2, id="in-a-pair", marks=SHORT),
        pytest.param(1, 50, 100, 3, id="alone-100", marks=LONG),
        pytest.param(2, 50, 100, 4, id="in-a-pair-100", marks=LONG),
    ],
)
def test_gangs_come_and_go_while_coordinators_are_killed(
    plot: Plot,
    chronicle: Chronicle,
    crew: Crew,
    replicas: int,
    gangs: int,
    kills: int,
    seed: int,
) -> None:
    """Were anything remembered that is not written down, a kill would leave half a gang behind.

    A decision that is acted on before it is written would be made again, differently: a pod would
    be on a node that its placement does not name, or a room given away twice.
    """
    plot.add_equal_nodes(NODES, CPUS)
    crew.start(replicas)
    traffic = Traffic(plot, random.Random(seed))
    with Killer(crew, kills, random.Random(seed), lambda: taken_over(chronicle.ledger)) as killer:
        traffic.flow(gangs, lambda: killer.busy)
    assert killer.kills >= kills
    room = {plot.node(name): cpus for name, cpus in ROOM.items()}
    expected = {(plot.name, name): count for name, count in traffic.minimum.items()}
    assert problems(chronicle.ledger, room) == []
    assert never_whole(chronicle.ledger, traffic.minimum) == []
    assert taken_over(chronicle.ledger), "no kill left a gang half released: it tests nothing"
    assert chronicle.partial_gangs(expected, GANG_SECONDS) == []


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_app_wrappers_come_and_go_while_all_programs_are_killed(
    plot: Plot, chronicle: Chronicle, crew: Crew, muster: Muster
) -> None:
    """The wrapper dies between any two steps of a creation, too."""
    plot.add_equal_nodes(NODES, CPUS)
    crew.start(2, {"APP_WRAPPERS": "true"})
    wrapper = muster.start_wrapper()
    wait_app_wrappers_trusted(muster.cluster)
    traffic = WrapperTraffic(plot, random.Random(5))
    try:
        with (
            Restarts(wrapper, random.Random(5)) as restarts,
            Killer(crew, 5, random.Random(5), lambda: taken_over(chronicle.ledger)) as killer,
        ):
            traffic.flow(12, lambda: killer.busy or restarts.kills < 10)
    finally:
        wrapper.stop()
    room = {plot.node(name): cpus for name, cpus in ROOM.items()}
    expected = {(plot.name, name): count for name, count in traffic.minimum.items()}
    assert problems(chronicle.ledger, room) == []
    assert never_whole(chronicle.ledger, traffic.minimum) == []
    assert taken_over(chronicle.ledger), "no kill left a gang half released: it tests nothing"
    assert chronicle.partial_gangs(expected, GANG_SECONDS) == []

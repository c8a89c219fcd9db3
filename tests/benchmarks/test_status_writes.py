"""The state machine in simulated time: many gangs wait, and one ends each second."""

import msgspec
import pytest

from benchmarks.many_queues import jobs
from benchmarks.simulation import GPU, Simulation, gpu_node
from benchmarks.status_writes import BUDGET, GANGS, QUEUES, SECONDS, count
from coordinator.record.write_lines import REASONS_BURST, REASONS_RATE
from kube.objects.queues.queue import GangQueue
from scheduling.model.verdict import Reason


@pytest.mark.long
def test_positions_and_numbers_stay_within_the_budget_and_are_right_within_a_minute() -> None:
    found = count(gangs=700, queues=1, seconds=70)
    assert found.most_a_second <= BUDGET
    assert found.wrong == 0
    assert found.a_second > 1, "positions do move"


@pytest.mark.long
@pytest.mark.parametrize("queues", QUEUES)
def test_so_do_those_of_twenty_thousand_gangs(queues: int) -> None:
    found = count(GANGS, queues, SECONDS)
    assert found.most_a_second <= BUDGET
    assert found.wrong == 0


def queue(parent: str) -> GangQueue:
    spec = {"parent": parent, "quota": {GPU: 8}, "namespaceSelector": {}}
    return msgspec.convert({"metadata": {"name": "q0"}, "spec": spec}, GangQueue)


@pytest.mark.long
def test_one_change_that_turns_the_reason_of_all_gangs_is_written_at_a_bounded_rate() -> None:
    """The queue itself says so within seconds."""
    gangs = 1100
    simulation = Simulation([gpu_node("n", 8)], [queue("")])
    simulation.come(jobs(gangs, queues=1))
    simulation.wait(60.0)
    before = simulation.writes.total()
    simulation.change(queue("missing"))
    simulation.wait(4.0)
    written = simulation.writes.total() - before
    assert REASONS_BURST <= written <= REASONS_BURST + 5 * REASONS_RATE
    assert simulation.queue("q0").status.conditions[0].status == "False"
    simulation.wait(gangs / REASONS_RATE)
    assert {simulation.status(key)["reason"] for key in simulation.courses} == {
        Reason.QUEUE_INACTIVE,
        Reason.RUNNING,
    }

"""Counts what thousands of waiting gangs cost the API server, in simulated time.

One gang ends each second and the next starts: the positions of all behind it move. Counted are the
writes of statuses that only move numbers, and those of GangQueues; the floor is the budget of both.
What the Gangs say is held against their true places.
"""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from benchmarks.measure import Outcome, Row, judged
from benchmarks.simulation import GPU, Job, Simulation, gpu_node
from coordinator.record.write_lines import told_position
from kube.objects import names
from kube.objects.queues.queue import GangQueue
from scheduling.model.gang import GangKey

GANGS, NODES, SECONDS, QUEUES = 20_000, 100, 300, (1, 60, 1000)
BUDGET = 20.0
"""Writes a second."""

RIGHT_WITHIN = 60
LOOKED_AT = 5
SEED = 1


@dataclass(frozen=True)
class Counted:
    """The writes of one run: in sum, in the busiest ten seconds, and positions that were wrong."""

    a_second: float
    most_a_second: float
    wrong: int


def measure(runs: int) -> Outcome:
    """Count with all gangs in one queue, in 60, and in 1,000."""
    rows, notes = [], []
    for queues in QUEUES:
        found = [count(GANGS, queues, SECONDS) for _ in range(runs)]
        name = f"busiest 10 s, {GANGS} gangs in {queues} queues, one ends each second, floor budget"
        ours = tuple(each.most_a_second for each in found)
        row = Row(name, "writes a second", ours, (BUDGET,) * runs)
        rows.append(judged(row, "at most the budget", lambda row: max(row.ours) <= BUDGET))
        notes.append(_note(queues, found))
    return Outcome(rows, notes=notes)


def count(gangs: int, queues: int, seconds: int) -> Counted:
    """Let gangs wait, end one each second, and count once the first writes are done."""
    simulation = Simulation((gpu_node(f"n{at}", 8) for at in range(NODES)), _queues(queues))
    simulation.come(_jobs(gangs, queues))
    for _ in range(2 * RIGHT_WITHIN):
        simulation.end_one_and_wait(1.0)
    return _count(simulation, seconds)


def _count(simulation: Simulation, seconds: int) -> Counted:
    told: deque[dict[GangKey, int]] = deque(maxlen=RIGHT_WITHIN + 1)
    wrong, totals = 0, [_so_far(simulation)]
    for second in range(seconds):
        told.append(_places(simulation))
        if second >= RIGHT_WITHIN and second % LOOKED_AT == 0:
            wrong = max(wrong, _wrong(simulation, told))
        simulation.end_one_and_wait(1.0)
        totals.append(_so_far(simulation))
    busiest = max(later - before for before, later in zip(totals, totals[10:], strict=False))
    return Counted((totals[-1] - totals[0]) / seconds, busiest / 10, wrong)


def _so_far(simulation: Simulation) -> int:
    return simulation.writes["numbers"] + simulation.writes["queue"]


def _places(simulation: Simulation) -> dict[GangKey, int]:
    """Return what each gang would be told now."""
    waiting = simulation.state.known.cycles.waiting
    lines = (waiting.line(name) for name in waiting.tree.names)
    ahead = (each for line in lines for each in line.minimums_ahead())
    return {key: told_position(1 + before, len(waiting)) for key, before in ahead}


def _wrong(simulation: Simulation, told: Sequence[dict[GangKey, int]]) -> int:
    """Count the gangs that say what was true at no second of the last minute."""
    says = {key: simulation.status(key)["position"] for key in told[-1]}
    doubtful = [key for key, position in told[-1].items() if says[key] != position]
    return sum(says[key] not in {then.get(key) for then in told} for key in doubtful)


def _queues(count: int) -> Iterator[GangQueue]:
    """Yield one queue that has all GPUs, and those below it, which borrow them."""
    spec: dict[str, object] = {"quota": {GPU: NODES * 8}}
    yield msgspec.convert({"metadata": {"name": "all"}, "spec": spec}, GangQueue)
    for at in range(count):
        spec = {"parent": "all", "namespaceSelector": {}}
        yield msgspec.convert({"metadata": {"name": f"q{at}"}, "spec": spec}, GangQueue)


def _jobs(count: int, queues: int) -> Iterator[Job]:
    """Yield gangs that take a node each."""
    chance, requests = random.Random(SEED), {"cpu": "8", "memory": "64Gi", GPU: "8"}
    for at in range(count):
        labels = {names.QUEUE: f"q{chance.randrange(queues)}"}
        yield Job(f"g{at:05}", at / 100, 1e12, 1, requests, labels)


def _note(queues: int, found: list[Counted]) -> str:
    wrong, mean = max(each.wrong for each in found), max(each.a_second for each in found)
    return (
        f"{queues} queues: {mean:.1f} writes a second on average; {wrong} positions were wrong "
        "for a minute"
    )

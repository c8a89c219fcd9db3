"""Asks whether a cycle would admit a gang with changed terms, without any effect."""

from coordinator.state.cycle.run_cycle import question
from coordinator.state.known import Known
from runtime.controller.moment import Moment
from scheduling.model.gang import PendingGang
from scheduling.model.verdict import Admitted


def would_admit(known: Known, asked: PendingGang, moment: Moment) -> bool:
    """Say whether the next cycle would admit a gang that waits if it asked for this."""
    waiting, memory = known.cycles.waiting, known.cycles.memory
    before = waiting.gang(asked.key)
    if before is None or known.cycles.joined.of(asked.key):
        return False  # too many gangs of its namespace wait, or it starts with others
    if memory is not None and any(each.preemptor == asked.key for each in memory.preemptions):
        memory = None  # what others give up is for what it asks for now
    waiting.put(asked)
    decisions, _ = question(known, memory, moment)()
    waiting.put(before)
    mine = (each.verdict for each in decisions if each.key == asked.key)
    return any(isinstance(verdict, Admitted) for verdict in mine)

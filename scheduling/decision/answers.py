"""Collects the decisions of one cycle, one for each gang at most."""

from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.verdict import Decision, Verdict
from scheduling.queueing.order import QueueOrder


class Answers:
    """The decisions so far, in the order in which they were made."""

    def __init__(self, order: QueueOrder) -> None:
        self._order = order
        self._answered: set[GangKey] = set()
        self.decisions: list[Decision] = []

    def __contains__(self, key: GangKey) -> bool:
        return key in self._answered

    def add(self, gang: PendingGang, verdict: Verdict) -> None:
        """Answer a gang that the order has handed out."""
        self.decisions.append(Decision(gang.key, verdict))
        self._answered.add(gang.key)

    def settle(self, gang: PendingGang, verdict: Verdict) -> None:
        """Answer a gang that the order has not handed out, and need not any more."""
        self.add(gang, verdict)
        self._order.settle(gang)

"""Remembers pods that were passed and may be on their way to a node.

kube-scheduler counts a pod as bound from the moment it has chosen; the watch tells of it a little
later, and much later where a volume has to be made first. Until then what was passed must count. A
record ends when the pod is seen bound or gone, is asked about again, or at its deadline, when the
scheduler itself has given up; never for lack of space, for that would be a wrong yes.
"""

import math

from extender.memory.in_flight_room import Passed, Recall, Underway


class Passing:
    """The memory of one replica. Times are of one monotonic clock, and given by the caller."""

    def __init__(self, *, settle: float, keep: float, limit: int) -> None:
        self._settle = settle
        self._keep = keep
        self._limit = limit
        self._asked: float | None = None
        self._sure_from = -math.inf
        self._underway = Underway()
        self._deadlines: dict[str, float] = {}
        self._ended = False
        self._unsure = False

    def __len__(self) -> int:
        return len(self._deadlines)

    def recall(self, uid: str, now: float) -> Recall:
        """What must count in a question asked now about the pod, which nobody chose a node for.

        Who was not asked for a while, or never yet, may not be the only one who is asked: it takes
        as long again until all that another one passed has come to the watch.
        """
        if self._may_have_missed(now):
            self._sure_from = now + self._settle
        self._asked = now
        self.settled(uid)
        recall = self.known(now)
        self._unsure |= not recall.complete
        return recall

    def _may_have_missed(self, now: float) -> bool:
        if self._asked is None:
            return True
        # Counted from the end of doubt: who was refused in it is tried again soon after it.
        return now - max(self._asked, self._sure_from) > self._settle

    def known(self, now: float) -> Recall:
        """The same, where nobody asks."""
        self._expire(now)
        few = len(self) < self._limit and self._underway.countable
        complete = now >= self._sure_from and few
        if complete and self._unsure:
            self._unsure, self._ended = False, True
        return Recall(self._underway, complete)

    def answered(self, uid: str, passed: Passed | None, now: float) -> None:
        """Remember an answer; it takes the place of an earlier one about the same pod."""
        self.settled(uid)
        if passed is not None:
            self._underway.add(passed)
            self._deadlines[uid] = now + self._keep

    def settled(self, uid: str) -> None:
        """The pod was seen bound, is gone, or is asked about again."""
        if self._deadlines.pop(uid, None) is not None:
            self._underway.remove(uid)

    def take_ended(self) -> bool:
        """Whether something ended by time alone, since this was last asked, for which pods may
        have been refused: a record of which nothing was seen, or doubt about others' records.
        """
        ended, self._ended = self._ended, False
        return ended

    def _expire(self, now: float) -> None:
        """Records are in the order of their deadlines."""
        while self._deadlines:
            uid, deadline = next(iter(self._deadlines.items()))
            if deadline > now:
                return
            self.settled(uid)
            self._ended = True

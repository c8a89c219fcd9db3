"""Remembers passed pods (kube-scheduler's assumed pods) until the watch shows them bound or gone.

kube-scheduler counts a pod as bound from the moment it has chosen a node. The watch reports the
binding a little later, and much later where a volume has to be made first. Until then a passed pod
must count. A record ends when the pod is seen bound or gone, is asked about again, or at its
deadline (`PASSED_SECONDS`), when kube-scheduler itself has given up; never for lack of space, for
that would be a wrong yes.

This is the one memory on which soundness rests. `extender/unscheduled_pods.py` (pods to be tried
again), `extender/wire/node_lists.py` (parsed lists) and `extender/score_prefetch.py` (one answer)
only save time, and may forget.
"""

import math

from extender.memory.in_flight_room import InFlight, InFlightRoom, PassedPod


class InFlightPods:
    """The passed pods of one replica. Times are of one monotonic clock, given by the caller."""

    def __init__(self, *, settle: float, keep: float, limit: int) -> None:
        self._settle = settle
        self._keep = keep
        self._limit = limit
        self._asked: float | None = None
        self._sure_from = -math.inf
        self._room = InFlightRoom()
        self._deadlines: dict[str, float] = {}
        self._ended = False
        self._unsure = False

    def __len__(self) -> int:
        return len(self._deadlines)

    def view_for(self, uid: str, now: float) -> InFlight:
        """Return what must count in a question asked now about a pod that has no node yet.

        After a pause, and before the first question, another replica may have been asked. The view
        is then incomplete for `settle` seconds: as long as a binding takes to reach the watch.
        """
        if self._may_have_missed(now):
            self._sure_from = now + self._settle
        self._asked = now
        self.settled(uid)
        view = self.view(now)
        self._unsure |= not view.complete
        return view

    def _may_have_missed(self, now: float) -> bool:
        if self._asked is None:
            return True
        # Counted from the end of doubt: pods refused in doubt are tried again soon after it.
        return now - max(self._asked, self._sure_from) > self._settle

    def view(self, now: float) -> InFlight:
        """Return what must count now, without a question."""
        self._expire(now)
        few = len(self) < self._limit and self._room.countable
        complete = now >= self._sure_from and few
        if complete and self._unsure:
            self._unsure, self._ended = False, True
        return InFlight(self._room, complete)

    def answered(self, uid: str, passed: PassedPod | None, now: float) -> None:
        """Remember an answer; it takes the place of an earlier one about the same pod."""
        self.settled(uid)
        if passed is not None:
            self._room.add(passed)
            self._deadlines[uid] = now + self._keep

    def settled(self, uid: str) -> None:
        """The pod was seen bound, is gone, or is asked about again."""
        if self._deadlines.pop(uid, None) is not None:
            self._room.remove(uid)

    def take_ended(self) -> bool:
        """Whether time alone has ended a reason for refusals since the last call.

        Such are a record whose pod was never seen bound, and doubt about other replicas' records.
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

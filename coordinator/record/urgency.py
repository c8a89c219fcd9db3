"""Says when a gang's status is to be written.

What a user decides on (the phase, the reason) and what other programs act on (the placement) is
written at once; what may pass by itself waits whether it does, and numbers that merely move wait
longer, so that a queue of hundreds does not write hundreds of times for each gang that leaves. A
gang that is admitted within a second was never told that it waits. Time is an argument.
"""

from dataclasses import dataclass, replace
from typing import Any

from scheduling.model.verdict import Reason

GATHERING = "Gathering"
QUEUED = "Queued"
QUOTA_RESERVED = "QuotaReserved"
ADMITTED = "Admitted"
RUNNING = "Running"
PREEMPTING = "Preempting"
FAILED = "Failed"
FINISHED = "Finished"

GATHER_DELAY = 5.0  # seconds without a new pod of any gang until it is told that some are missing
GATHER_LIMIT = 30.0  # seconds until that is told though pods of others come all the time
SETTLE_DELAY = 1.0  # seconds for which a gang is not told that it waits: it may be admitted
QUIET_DELAY = 10.0  # seconds until numbers of a gang that starts are written, or that it is pending
LONGEST_QUIET = 60.0  # the most seconds for which the numbers of a waiting gang may be old
AT_ONCE = ("phase", "reason")
UNSAID = ("", "")
COMING = (Reason.PENDING, Reason.GANG_INCOMPLETE)

LASTING = (Reason.NEVER_FITS, Reason.UNSUPPORTED)
"""Verdicts that no freed capacity changes."""

Status = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ClusterActivity:
    """How much goes on in the cluster.

    `quiet` is the time between writes that only move numbers, `came` when a gated pod of any gang
    came last.
    """

    quiet: float
    came: float


@dataclass(frozen=True, slots=True)
class Urgency:
    """Since when the record of one gang is behind, and when it was written last.

    `since` is when the record began to differ from what it should say, None while it does not;
    `said` are the phase and the reason that it should say, `said_since` since when. `renewals`
    counts the writes since those changed.
    """

    written_at: float = 0.0
    since: float | None = None
    said: tuple[str, str] = UNSAID
    said_since: float = 0.0
    renewals: int = 0

    def compared(self, status: Status, written: Status, now: float) -> "Urgency":
        """Take in whether the record says what it should."""
        if _says_the_same(status, written):
            return replace(self, since=None, said=UNSAID)
        since = now if self.since is None else self.since
        said = (status["phase"], status["reason"])
        if said == self.said:
            return replace(self, since=since)
        return replace(
            self, since=since, said=said, said_since=since if self.said == UNSAID else now
        )

    def due(
        self, status: Status, written: Status, activity: ClusterActivity, *, refused: bool
    ) -> float | None:
        """When the status is to be written; None where the record says the same already.

        `refused`: it tells of a verdict, which the next cycle may change.
        """
        since = self.since
        if since is None:
            return None
        if status.get("placement") != written.get("placement"):
            return 0.0  # also one that is given up: others may get its room in the next cycle
        if _is_awaited(status, written):
            return 0.0
        if status["reason"] in COMING:
            return self._due_of_coming(since, status, activity)
        if any(status.get(field) != written.get(field) for field in AT_ONCE):
            return self._due_of_reason(since, status, written, activity, refused=refused)
        return self._due_of_numbers(since, status, written, activity, refused=refused)

    def _due_of_coming(self, since: float, status: Status, activity: ClusterActivity) -> float:
        """When it is due that pods or a verdict are missing, which mostly come by themselves."""
        if status["phase"] not in (GATHERING, QUEUED):
            return since + SETTLE_DELAY  # the gang had all of its pods before
        if status["reason"] == Reason.PENDING:
            return min(self.said_since + QUIET_DELAY, since + GATHER_LIMIT)
        came = max(self.said_since, activity.came)
        return min(came + GATHER_DELAY, since + GATHER_LIMIT)

    def sent(self, status: Status, written: Status, now: float) -> "Urgency":
        """Take in that the status is on its way."""
        same = all(status.get(field) == written.get(field) for field in AT_ONCE)
        return Urgency(now, said_since=self.said_since, renewals=self.renewals + 1 if same else 0)

    def delay_of(self, quiet: float, *, later: bool) -> float:
        """Seconds for which numbers may be wrong; a wrong position is no reason to wait `later`."""
        delay = self.renewal_delay(quiet)
        return delay if later else min(delay, QUIET_DELAY)

    def renewal_delay(self, quiet: float) -> float:
        """Seconds for which numbers of the gang may be old while it waits: the longer the more."""
        longer = SETTLE_DELAY * 2.0 ** min(self.renewals, 10)
        return max(quiet, min(longer, QUIET_DELAY))

    def _due_of_reason(
        self,
        since: float,
        status: Status,
        written: Status,
        activity: ClusterActivity,
        *,
        refused: bool,
    ) -> float:
        """When it is due that another phase or reason holds."""
        if refused:
            return self._due_of_refusal(since, status, written, activity)
        is_sent = (written.get("phase"), status["phase"]) == (QUOTA_RESERVED, ADMITTED)
        return since + SETTLE_DELAY if is_sent else 0.0  # its cluster mostly starts it by then

    def _due_of_refusal(
        self, since: float, status: Status, written: Status, activity: ClusterActivity
    ) -> float:
        """When it is due that a gang waits, or waits for another reason than before."""
        told = written.get("phase") == QUEUED and status["reason"] not in LASTING
        quiet = self.written_at + min(activity.quiet, QUIET_DELAY) if told else 0.0
        return max(since + SETTLE_DELAY, quiet)

    def _due_of_numbers(
        self,
        since: float,
        status: Status,
        written: Status,
        activity: ClusterActivity,
        *,
        refused: bool,
    ) -> float:
        match status["phase"]:
            case "Queued" if not refused:
                return max(since, self.written_at) + SETTLE_DELAY  # only its user can end this
            case "Admitted":
                return since + QUIET_DELAY
            case "Running":
                return max(since + SETTLE_DELAY, self.written_at + activity.quiet)
            case _:
                same = status.get("position") == written.get("position")
                return since + self.delay_of(activity.quiet, later=same)


def _is_awaited(status: Status, written: Status) -> bool:
    """Say whether others wait for it to be written: what ends, for which plan, what is held again.

    That a RayCluster is held stands on it too, until there is a first status.
    """
    held = bool(written) and status.get("held") != written.get("held")
    return held or any(status.get(each) != written.get(each) for each in ("evictions", "planned"))


def _says_the_same(status: Status, written: Status) -> bool:
    """A new term alone is no reason to write: its epoch comes with the next change."""
    return {**status, "epoch": 0} == {**written, "epoch": 0}


def quiet_delay(waiting: int) -> float:
    """Seconds between writes of one waiting gang's numbers: 10 writes a second over all of them."""
    return min(LONGEST_QUIET, max(SETTLE_DELAY, waiting / 10))

"""Keeps what is known of one Ray object that may be sent to a member.

What one leader remembers can be lost: whoever leads next finds it out again.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dispatcher.candidates import Member
from dispatcher.copies import why_never
from dispatcher.mirroring import Settling
from dispatcher.protocol.dispatching import Leader, ObservedMember
from dispatcher.protocol.leave import Leave
from dispatcher.protocol.objects import Lease, Offer, Phase, Record
from dispatcher.reading import Answer, Copy, Original, Path, Turn, path_of
from dispatcher.warned import Warnings
from kube.gang.holes import Need, Room
from kube.objects.clusters.dispatch import ENDS, GangDispatch
from kube.objects.clusters.queue_clusters import QueueClusters
from runtime.controller.moment import Moment
from runtime.controller.pause import Pause

LEFT_ALONE = 60.0
"""Seconds for which a member that refused a gang for its own reasons is not asked again."""
MOST_DOUBLINGS = 4

HARMLESS = (
    *("", "NotAccepted", "AcceptedTooEarly", "OtherLeader", "Ended", "Withdrawn", "ManagerLost"),
    *ENDS,
)
"""Reasons of a Closed offer after which the member may be asked again at once."""

OLDER = "its Muster is older, and does not know lostAfterSeconds"

NOTHING = Leader(0, 0.0)


@dataclass(slots=True)
class MemberBackoff:
    """Why a member is not asked for a gang for a time."""

    why: str = ""
    until: float = 0.0
    times: int = 0
    offers: set[str] = field(default_factory=set)
    """Uids of the offers that were counted."""

    def grow(self, answer: Answer, why: str, now: float) -> None:
        """Count an offer that the member has closed; once for each."""
        if answer.metadata.uid in self.offers:
            return
        self.offers.add(answer.metadata.uid)
        self.why = why
        self.until = now + LEFT_ALONE * 2.0 ** min(self.times, MOST_DOUBLINGS)
        self.times += 1


@dataclass(slots=True)
class Turns:
    """Whose turn it is to be asked for a gang: each has one before any has another.

    So a member whose room comes and goes keeps no other one from it.
    """

    needs: tuple[Need, ...] = ()
    """What the gang needs: with other needs all begins anew."""
    began: float = -math.inf
    """When this turn began (monotonic seconds)."""
    now: tuple[str, ...] = ()
    had: set[str] = field(default_factory=set)
    """Members that had theirs since all had it last, those of now included."""
    rooms: Mapping[str, Room] = field(default_factory=dict)
    """What members showed when it began."""

    def begin(self, best_first: Sequence[tuple[Room, str]], at_once: int, now: float) -> None:
        """Have the next ones asked, the best first."""
        names = [name for _, name in best_first]
        if self.had.issuperset(names):
            self.had.clear()
        self.now = tuple(name for name in names if name not in self.had)[:at_once]
        self.had.update(self.now)
        self.rooms = {name: room for room, name in best_first}
        self.began = now


@dataclass(slots=True)
class View:
    """One Ray object, its Gang, and what members have of it."""

    uid: str
    original: Original | None = None
    turn: Turn | None = None
    answers: dict[str, dict[str, Answer]] = field(default_factory=dict)
    """By member and name of the GangOffer."""
    copies: dict[str, dict[Path, Copy]] = field(default_factory=dict)
    """By member what says that it is the copy, or of it."""
    under_way: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By lane the ticket of what is under way, and the member whose answer it waits for."""
    pauses: dict[str, Pause] = field(default_factory=dict)
    """By lane."""
    faults: dict[str, str] = field(default_factory=dict)
    """By lane what failed last."""
    averse: dict[str, MemberBackoff] = field(default_factory=dict)
    """By member."""
    leave: Leave = field(default_factory=Leave)
    """Which members might stop gangs for it."""
    refused: set[str] = field(default_factory=set)
    """Uids of offers that are not accepted: their members do not let its creator."""
    leader: Leader = field(default_factory=lambda: NOTHING)
    next_attempt: Pause = field(default_factory=Pause)
    created: set[str] = field(default_factory=set)
    """Uids of the offers for which the copy was created."""
    told_at: float = 0.0
    """When it was last written what members say."""
    warnings: Warnings = field(default_factory=Warnings)
    mirrored_at: float = 0.0
    """When its status was written last."""
    mirrored: dict[str, Any] | None = None
    """The status that was last written to the original."""
    settling: Settling = field(default_factory=Settling)
    """That of the status of its copy."""
    turns: Turns = field(default_factory=Turns)
    """Which members are asked before others, where there are more than are asked at once."""

    @property
    def turns_for_now(self) -> Turns:
        """Return whose turn it is, by what the gang needs now."""
        needs = self.turn.needs if self.turn is not None else ()
        if self.turns.needs != needs:
            self.turns = Turns(needs)
        return self.turns

    @property
    def dispatch(self) -> GangDispatch | None:
        """Its record, where there is one."""
        return self.turn.dispatch if self.turn is not None else None

    @property
    def cluster(self) -> str:
        """The member that is on record for an attempt that is not over; empty where none is."""
        found = self.dispatch
        return found.cluster if found is not None and found.is_open else ""

    @property
    def is_left(self) -> bool:
        """Whether anything of it is left."""
        return bool(
            self.original or self.turn or any(self.answers.values()) or any(self.copies.values())
        )

    @property
    def waits_for_member(self) -> bool:
        """Whether it is its turn, and no member is on record."""
        return self.turn is not None and self.turn.is_its_turn and not self.cluster

    @property
    def is_never_sent(self) -> bool:
        """Whether no member is ever asked for it."""
        return self.original is not None and bool(why_never(self.original))

    def waits_in(self, queue: str) -> bool:
        """Whether it waits so in that queue."""
        return self.turn is not None and self.turn.queue == queue and self.waits_for_member

    def copy_on(self, member: str) -> Copy | None:
        """Return the copy that a member has."""
        if self.original is None:
            return None
        return self.copies.get(member, {}).get(path_of(self.original))

    def is_older(self, answer: Answer) -> bool:
        """Say whether its member is of a release that would not stop it as is on record."""
        record = self.dispatch
        if record is None or record.attempt != answer.attempt:
            return False
        return answer.lost_after != record.lost_after_seconds

    def aversion(self, member: str) -> MemberBackoff:
        """Return what a member has against it."""
        return self.averse.setdefault(member, MemberBackoff())

    def refuse(self, member: str, offer: str, why: str, now: float) -> None:
        """Take in that a member does not let its creator; the right may be granted any moment."""
        aversion = self.aversion(member)
        aversion.why, aversion.until = why, now + LEFT_ALONE
        self.refused.add(offer)

    def begin_term(self, leader: Leader) -> None:
        """Forget what an earlier term had under way."""
        self.leader = leader
        kept = self.under_way, self.pauses, self.faults, self.averse, self.created, self.refused
        for each in kept:
            each.clear()
        self.answers, self.copies, self.next_attempt = {}, {}, Pause()
        self.mirrored, self.warnings, self.settling = None, Warnings(), Settling()
        self.leave = Leave()

    def lose(self, member: str) -> None:
        """Forget what was seen of a member, and what was under way there."""
        self.answers.pop(member, None)
        self.copies.pop(member, None)
        self.leave.may_be_lost(member)
        for lane, (_, place) in list(self.under_way.items()):
            if place == member:
                del self.under_way[lane]


@dataclass(frozen=True, slots=True)
class Look:
    """All that one step of one RayCluster depends on."""

    view: View
    members: Mapping[str, Member]
    clusters: QueueClusters | None
    lost_after: int
    """That of its queue, for the next attempt."""
    may_ask: bool
    """Whether it is among the first of its queue."""
    moves: bool
    """Whether it is to leave its member, which is drained."""
    manager: str
    moment: Moment
    wakes: list[float] = field(default_factory=list)
    """When it is to be looked at again though nothing happens."""

    def is_free(self, lane: str) -> bool:
        """Say whether a lane has nothing under way, and no failure to rest from."""
        pause = self.view.pauses.get(lane)
        if pause is not None and pause.not_before > self.moment.now:
            self.wakes.append(pause.not_before)
            return False
        return lane not in self.view.under_way

    def answer(self, member: str) -> Answer | None:
        """Return the GangOffer of the recorded attempt on a member."""
        found, record = self.view.answers.get(member, {}), self.view.dispatch
        attempt = record.attempt if record is not None else 0
        return next((each for each in found.values() if each.attempt == attempt), None)

    def trouble(self) -> dict[str, str]:
        """Say which members are not asked for a time."""
        found = {}
        for name, aversion in self.view.averse.items():
            if aversion.until > self.moment.now:
                found[name] = aversion.why
                self.wakes.append(aversion.until)
        return found

    def all_answers(self) -> Iterator[tuple[str, Answer]]:
        """Yield all GangOffers for it, each with its member."""
        for member, found in self.view.answers.items():
            for each in found.values():
                yield member, each


# ---- in the words of the protocol


def record_of(turn: Turn, dispatch: GangDispatch) -> Record:
    """Return what is on record."""
    version = version_of(turn.metadata.resource_version)
    fence = dispatch.lost_after_seconds
    return Record(dispatch.attempt, dispatch.cluster, dispatch.term, version, fence)


def observed(member: Member, answers: Mapping[str, Answer], attempt: int) -> ObservedMember:
    """Return what was seen of a member."""
    offers = [offer_of(each) for each in answers.values()]
    now = next((each for each in offers if each.attempt == attempt), None)
    earlier = tuple(each for each in offers if each.attempt < attempt)
    return ObservedMember(Lease(member.term), now, earlier)


def offer_of(answer: Answer) -> Offer:
    """Return a GangOffer."""
    return Offer(
        attempt=answer.attempt,
        uid=answer.metadata.uid,
        version=version_of(answer.metadata.resource_version),
        phase=Phase(answer.phase or Phase.ASKED),
        accepted_by=answer.accepted_by,
        withdrawn=answer.is_withdrawn,
        lost_after=answer.lost_after,
    )


def version_of(written: str) -> int:
    """Return a resourceVersion as a number; 0 where it is none."""
    return int(written) if written.isdecimal() else 0

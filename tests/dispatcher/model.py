"""A manager, its leaders, members and their coordinators, and a network that loses and doubles.

Everything is one event at a time: a read, a decision, a write on its way, its arrival, a look of a
coordinator, a death, a tick of the clocks. A history is a row of bytes: each chooses one of the
events that are possible then. The clocks of all run alike and show different times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

from dispatcher.protocol import dispatching, offering
from dispatcher.protocol.dispatching import Leader, ObservedMember
from dispatcher.protocol.objects import Lease, Offer, Phase, Record
from dispatcher.protocol.offering import Moment, Move
from dispatcher.protocol.steps import (
    Accept,
    Ask,
    Choose,
    CopyStamp,
    Retry,
    Step,
    TakeMember,
    TakeRecord,
    Withdraw,
)

TICK = 30.0
LOST_AFTER = 300.0
CANDIDATES = ("a", "b")
RARE = 225
"""Bytes from here on choose one of the rarer events."""
TIMES = 2
"""How often a message arrives at most."""

Event = Callable[[], None]
Sent = Step | CopyStamp


class TwoRunError(AssertionError):
    """A gang runs on two members."""


@dataclass
class Coming:
    """A message, which may arrive at any time, also when who sent it is long gone."""

    content: Sent
    lost_after: float = 0.0
    """The rule of the queue when it was sent."""
    arrived: int = 0


@dataclass
class Member:
    """A member's API server and its coordinator."""

    name: str
    offset: float
    """Its time of day beside that of the manager."""
    lease: Lease = field(default_factory=Lease)
    offers: dict[int, Offer] = field(default_factory=dict)
    offered_at: dict[str, float] = field(default_factory=dict)
    """By uid, as the coordinator of now remembers it."""
    copied: float | None = None
    """The stamp that was written back, as the coordinator of now has read it last."""
    starting: tuple[Offer, Lease] | None = None
    """A start that was decided, and is not written yet."""
    reachable: bool = True
    is_old: bool = False
    """Whether its definition of GangOffer knows no fence."""

    def running(self) -> list[Offer]:
        return [each for each in self.offers.values() if each.phase is Phase.STARTED]


@dataclass
class Replica:
    """A replica of the dispatcher that leads, or believes so."""

    leader: Leader
    read: Record | None = None
    seen: dict[str, ObservedMember] = field(default_factory=dict)


class World:
    """One gang that is to run somewhere, once."""

    def __init__(self, *, requeues: bool, changes: bool = False) -> None:
        """`changes`: the rule of the queue may be another one from one attempt to the next."""
        self.now = 1000.0
        self.lost_after = LOST_AFTER if requeues else 0.0
        self.changes, self.fences = changes, changes or requeues
        self.record = Record(lost_after=self.lost_after)
        offsets = zip(CANDIDATES, (0.0, 7e4), strict=True)
        self.members = {name: Member(name, offset) for name, offset in offsets}
        for each in self.members.values():
            each.lease = Lease(stamp=self.now + each.offset, copied=self.now + each.offset)
        self.replicas = [Replica(Leader(1, self.now))]
        self.coming: list[Coming] = []
        self._uids = count()
        self.starts = 0

    @property
    def newest(self) -> Replica:
        return self.replicas[-1]

    # ---- a history

    def play(self, history: bytes) -> None:
        for choice in history:
            events = list(self.common() if choice < RARE else self.rare())
            events[choice % len(events)]()
            self.check()

    def check(self) -> None:
        running = [(m.name, each.attempt) for m in self.members.values() for each in m.running()]
        if len(running) > 1:
            raise TwoRunError(running)

    def common(self) -> Iterator[Event]:
        """What brings the gang on, the more of each the likelier it is."""
        for replica in self.replicas:
            yield from self._of_replica(replica)
        for message in self.coming[-4:]:
            yield from (3 - message.arrived) * [partial(self.arrive, message)]
        for member in self.members.values():
            yield from (partial(self.look, member, attempt) for attempt in member.offers)
            if member.copied is None:
                yield partial(self.read_lease, member)
            if member.starting is not None:
                yield partial(self.start, member)

    def _of_replica(self, replica: Replica) -> Iterator[Event]:
        if replica.read is None:
            yield partial(self.read_record, replica)
            return
        yield from 2 * [partial(self.decide, replica)]
        for name in CANDIDATES:
            if self.members[name].reachable:
                yield from 3 * [partial(self.read_member, replica, name)]

    def rare(self) -> Iterator[Event]:
        """What goes wrong, and what ends."""
        yield from (self.tick, self.leap, self.elect, partial(self.read_record, self.newest))
        if self.changes:
            yield self.change_queue
        for message in self.coming[:-4]:
            yield partial(self.arrive, message)
        for member in self.members.values():
            yield from 2 * [partial(self.stamp, member)]
            yield partial(self.restart, member)
            yield partial(self.cut, member)
            yield partial(self.end_job, member)
            yield partial(self.delete_by_hand, member)

    # ---- the dispatcher

    def elect(self) -> None:
        """Another leader: what the one before sent may still be on its way.

        Where no gang is fenced the one before may also go on without having heard of it.
        """
        self.replicas.append(Replica(Leader(self.newest.leader.term + 1, self.now)))
        del self.replicas[: -1 if self.fences else -2]

    def read_record(self, replica: Replica) -> None:
        replica.read, replica.seen = self.record, {}

    def read_member(self, replica: Replica, name: str) -> None:
        """Read it after the record; a stamp that is new is written back."""
        assert replica.read is not None
        member, attempt = self.members[name], replica.read.attempt
        earlier = tuple(each for number, each in member.offers.items() if number < attempt)
        replica.seen[name] = ObservedMember(member.lease, member.offers.get(attempt), earlier)
        if member.lease.stamp > (member.lease.copied or 0.0):
            self.send(CopyStamp(name, member.lease.stamp))
            replica.leader.copied_at[name] = self.now

    def decide(self, replica: Replica) -> None:
        """Send the next step, and read all anew whatever comes of it."""
        step = self._step(replica)
        if isinstance(step, Retry):
            replica.leader.retried = step.attempt
        if step is not None:
            self.send(step)
        replica.read, replica.seen = None, {}

    def _step(self, replica: Replica) -> Step | None:
        leader, read = replica.leader, replica.read
        assert read is not None
        step = dispatching.next_step(leader, read, replica.seen, CANDIDATES)
        if step is None and read.cluster not in replica.seen:
            return dispatching.retry_after_loss(leader, read, self.now)
        return step

    def send(self, content: Sent) -> None:
        self.coming.append(Coming(content, self.lost_after))

    def change_queue(self) -> None:
        """Have its owner write another rule for lost members."""
        self.lost_after = 0.0 if self.lost_after else LOST_AFTER

    # ---- what arrives

    def arrive(self, message: Coming) -> None:
        """Have an API server take it, or refuse it."""
        message.arrived += 1
        if message.arrived >= TIMES:
            self.coming.remove(message)
        content = message.content
        if isinstance(content, TakeRecord | Choose | Retry):
            self._write_record(content, message.lost_after)
        else:
            self._write_member(self.members[content.cluster], content)

    def _write_record(self, content: TakeRecord | Choose | Retry, lost_after: float) -> None:
        if content.version != self.record.version:
            return
        if isinstance(content, TakeRecord):
            changed = replace(self.record, term=content.term)
        elif isinstance(content, Choose):
            changed = replace(self.record, cluster=content.cluster)
        else:
            changed = Record(content.attempt, "", self.record.term, lost_after=lost_after)
        self.record = replace(changed, version=self.record.version + 1)

    def _write_member(
        self, member: Member, content: TakeMember | CopyStamp | Ask | Accept | Withdraw
    ) -> None:
        if isinstance(content, TakeMember):
            if content.term > member.lease.term:
                member.lease = replace(member.lease, term=content.term)
        elif isinstance(content, CopyStamp):
            copied = max(member.lease.copied or 0.0, content.stamp)
            member.lease = replace(member.lease, copied=copied)
        elif isinstance(content, Ask):
            self._create(member, content)
        else:
            self._change(member, content)

    def _create(self, member: Member, content: Ask) -> None:
        if content.attempt not in member.offers:
            fence = 0.0 if member.is_old else content.lost_after
            made = Offer(content.attempt, f"uid-{next(self._uids)}", lost_after=fence)
            member.offers[content.attempt] = made

    def _change(self, member: Member, content: Accept | Withdraw) -> None:
        offer = member.offers.get(content.attempt)
        if offer is None or content.uid not in ("", offer.uid):
            return
        if isinstance(content, Withdraw):
            self.put(member, replace(offer, withdrawn=True))
        elif content.uid == "" or content.version == offer.version:
            self.put(member, replace(offer, accepted_by=content.term))

    def put(self, member: Member, offer: Offer) -> None:
        member.offers[offer.attempt] = replace(offer, version=offer.version + 1)

    # ---- a member's coordinator

    def look(self, member: Member, attempt: int) -> None:
        offer = member.offers[attempt]
        move = self.next_move(member, offer)
        if move is Move.OFFER:
            member.offered_at[offer.uid] = self.now
            self.put(member, replace(offer, phase=Phase.OFFERED))
        elif move is Move.START:
            member.starting = (offer, member.lease)
        elif move is Move.CLOSE:
            self.put(member, replace(offer, phase=Phase.CLOSED))
        elif move is Move.FORGET:
            del member.offers[attempt]

    def start(self, member: Member) -> None:
        """Write what was decided, if the offer is as it was."""
        assert member.starting is not None
        offer, member.starting = member.starting[0], None
        if member.offers.get(offer.attempt) == offer:
            self.put(member, replace(offer, phase=Phase.STARTED))
            self.starts += 1

    def end_job(self, member: Member) -> None:
        for each in member.running():
            self.put(member, replace(each, phase=Phase.CLOSED))

    def next_move(self, member: Member, offer: Offer) -> Move | None:
        lease = replace(member.lease, copied=member.copied)
        now = Moment(self.now, self.now + member.offset)
        return offering.next_move(offer, lease, now, member.offered_at.get(offer.uid))

    def read_lease(self, member: Member) -> None:
        member.copied = member.lease.copied

    def stamp(self, member: Member) -> None:
        """Say that it is there, and read what was written back; what ran out is closed first."""
        if member.copied is None:
            return
        if offering.may_stamp([self.next_move(member, each) for each in member.offers.values()]):
            member.lease = replace(member.lease, stamp=self.now + member.offset)
            self.read_lease(member)

    def delete_by_hand(self, member: Member) -> None:
        for each in list(member.offers.values()):
            self.put(member, replace(each, withdrawn=True))

    def cut(self, member: Member) -> None:
        """Cut it off from the dispatcher's reads, or end that."""
        member.reachable = not member.reachable

    def restart(self, member: Member) -> None:
        """What it has written stays; what it remembered and had decided is gone."""
        member.offered_at.clear()
        member.starting = member.copied = None

    # ---- time

    def leap(self) -> None:
        for _ in range(int(LOST_AFTER / TICK / 2)):
            self.tick()

    def tick(self) -> None:
        """Let time pass. A coordinator that runs stops in time what it has to."""
        for member in self.members.values():
            self._stop_in_time(member)
        self.now += TICK

    def _stop_in_time(self, member: Member) -> None:
        starting = [member.starting[0]] if member.starting is not None else []
        for each in (*starting, *member.running()):
            if each.lost_after and self.now + member.offset + TICK >= self._ends(member, each):
                member.starting = None
                if each.phase is Phase.STARTED:
                    self.put(member, replace(each, phase=Phase.CLOSED))

    def _ends(self, member: Member, offer: Offer) -> float:
        """When none of its pods is left at the latest."""
        stop = offering.stop_seconds(offer.lost_after)
        return offering.may_run_until(member.lease, offer.lost_after) + stop

    # ---- when all is well again

    def heal(self) -> None:
        """Let everything arrive, and everybody act in turn, until the gang runs."""
        for member in self.members.values():
            member.reachable = True
        for _ in range(200):
            self._round()
            if any(member.running() for member in self.members.values()):
                return
        raise AssertionError(f"does not run: {self.record}, {self.members}")

    def _round(self) -> None:
        for message in list(self.coming):
            self.arrive(message)
            self.check()
        for member in self.members.values():
            self.read_lease(member)
            self.stamp(member)
            for attempt in list(member.offers):
                self.look(member, attempt)
                if member.starting is not None:
                    self.start(member)
                self.check()
        self.read_record(self.newest)
        for name in CANDIDATES:
            self.read_member(self.newest, name)
        self.decide(self.newest)

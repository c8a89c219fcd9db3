"""Brings each Ray object that is sent to members forward, as the leader of one term. Pure.

Events and the moment go in, actions come out. An object is looked at when something of it changed
or its moment has come. A member that does not answer delays only the objects that wait for it.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from dispatcher import messages
from dispatcher.candidates import NEVER
from dispatcher.draining import to_move
from dispatcher.known import Known, Uids
from dispatcher.next_writes import next_writes
from dispatcher.protocol.offering import stamp_seconds
from dispatcher.reading import Copy
from dispatcher.view import Look, View
from runtime.controller.moment import Moment
from runtime.controller.pause import Pause

LOOK_EVERY = 1.0
"""Seconds from one look to the next whether gangs of a member stop where it is not renewed."""

FIRST_FEW = 8
"""Gangs of one queue that members are asked for at one time."""


@dataclass(slots=True)
class _Lease:
    """The write of the leader's term on one member."""

    ticket: int = 0
    pause: Pause = field(default_factory=Pause)
    due: float = 0.0
    """When it is looked at again whether it has to be renewed."""


class DispatcherState:
    """The state of one replica. Only a leader gets actions."""

    def __init__(self) -> None:
        self.known = Known()
        self.leads = False
        self._leases: dict[str, _Lease] = {}
        self._asked: dict[str, set[str]] = {}
        """By queue the gangs that members may be asked for."""
        self._moving: set[str] = set()
        """Those that leave a drained member."""
        self._wakes: list[tuple[float, str]] = []
        self._wake_of: dict[str, float] = {}
        self._tickets = 0

    @property
    def next_wake(self) -> float | None:
        """When time itself is an event: monotonic seconds, None for never."""
        members = self.known.members.items()
        due = [self._leases[name].due for name, each in members if each.up and name in self._leases]
        return min([*due, *(at for at, _ in self._wakes[:1])], default=None)

    @property
    def newest_term(self) -> int:
        """The newest term on any record."""
        views = self.known.views.values()
        return max((each.dispatch.term for each in views if each.dispatch), default=0)

    def handle(self, events: Iterable[messages.Event], moment: Moment) -> list[messages.Action]:
        """Take in what happened, and return what is to be done."""
        concerned: dict[str, None] = {}
        for event in events:
            concerned.update(dict.fromkeys(self._take(event, moment)))
        if not self.leads:
            return []
        concerned.update(dict.fromkeys(self._admitted(concerned)))
        before, self._moving = self._moving, set(to_move(self.known))
        concerned.update(dict.fromkeys(sorted(self._moving - before)))
        actions = [each for uid in concerned for each in self._advance(uid, moment)]
        return actions + [each for name in self.known.members for each in self._renew(name, moment)]

    # --- taking in ----------------------------------------------------------------------------

    def _take(self, event: messages.Event, moment: Moment) -> Uids:
        """Take one event in; returns what is to be looked at."""
        found: Uids
        match event:
            case messages.Seen(where, thing):
                found = self.known.see(where, thing, moment)
            case messages.Gone(where, thing):
                found = self.known.forget(where, thing, moment)
            case messages.Ended():
                found = self._ended(event, moment)
            case messages.LeaseTaken():
                found = self._lease_taken(event, moment)
            case messages.MemberUp() | messages.MemberDown():
                found = self._turned(event, moment)
            case messages.TermStarted() | messages.TermEnded():
                found = self._change_term(event, moment)
            case messages.TimePassed():
                found = list(self._due(moment.now))
        return found

    def _change_term(
        self, event: messages.TermStarted | messages.TermEnded, moment: Moment
    ) -> Uids:
        """Begin or end a term; what an earlier one had under way is not known."""
        self.leads = isinstance(event, messages.TermStarted)
        self._wakes, self._wake_of, self._leases, self._asked = [], {}, {}, {}
        self._moving = set()
        if isinstance(event, messages.TermEnded):
            return ()
        return self.known.begin_term(event.term, event.manager, moment.now)

    def _turned(self, event: messages.MemberUp | messages.MemberDown, moment: Moment) -> Uids:
        member = self.known.members.get(event.member)
        if member is None or member.up:  # up to now a stamp may have been written back there
            self.known.leader.copied_at[event.member] = moment.now
        if member is None:
            return ()
        member.up = isinstance(event, messages.MemberUp)
        if isinstance(event, messages.MemberDown):
            member.why_down, member.term, member.renewed_at = event.why, 0, NEVER
            self._leases.pop(event.member, None)
            self.known.lose(event.member)
        return self.known.involved()

    def _ended(self, event: messages.Ended, moment: Moment) -> Uids:
        view = self.known.views.get(event.uid)
        if view is None or view.under_way.get(event.lane, (0, ""))[0] != event.ticket:
            return ()
        del view.under_way[event.lane]
        pause = view.pauses.setdefault(event.lane, Pause())
        if isinstance(event.result, messages.Failed):
            pause.lengthen(moment.now)
            view.leave.may_be_lost(event.lane)
            view.faults[event.lane] = event.result.error
            view.mirrored = None if event.lane == messages.STATUS else view.mirrored
            return (event.uid,)
        pause.end()
        view.faults.pop(event.lane, None)
        if isinstance(event.result, messages.NotAllowed):
            view.refuse(event.lane, event.result.offer, event.result.why, moment.now)
            return (event.uid,)
        for where, thing in event.result.things:
            if not self.known.is_gone(where, thing):
                self.known.see(where, thing, moment)
            if isinstance(thing, Copy):
                view.created.add(thing.offer)
        return (event.uid,)

    def _lease_taken(self, event: messages.LeaseTaken, moment: Moment) -> Uids:
        lease, member = self._leases.get(event.member), self.known.members.get(event.member)
        if lease is None or member is None or lease.ticket != event.ticket:
            return ()
        lease.ticket = 0
        if event.renewed:
            lease.pause.end()
            member.renewed_at = moment.now
        else:  # also where its coordinator has written no newer stamp yet
            lease.pause.lengthen(moment.now)
        member.lease_fault = event.error
        member.term = member.term if event.error else event.term
        return list(member.gangs)

    def _due(self, now: float) -> Iterator[str]:
        while self._wakes and self._wakes[0][0] <= now:
            at, uid = heapq.heappop(self._wakes)
            if self._wake_of.get(uid) == at:
                del self._wake_of[uid]
                yield uid

    # --- acting -------------------------------------------------------------------------------

    def _admitted(self, concerned: Mapping[str, None]) -> Uids:
        """Choose anew the gangs that members are asked for; returns those that were not before."""
        views = (self.known.views.get(uid) for uid in concerned)
        queues = {each.turn.queue for each in views if each is not None and each.turn is not None}
        queues |= {queue for queue, asked in self._asked.items() if not asked.isdisjoint(concerned)}
        fresh: list[str] = []
        for queue in sorted(queues):
            before, now = self._asked.get(queue, set()), self._first_few(queue)
            self._asked[queue] = now
            fresh += sorted(now - before)
        return fresh

    def _first_few(self, queue: str) -> set[str]:
        waiting = [
            (-view.turn.priority, view.turn.metadata.creation_timestamp or "", uid)
            for uid, view in self.known.views.items()
            if view.turn is not None and view.waits_in(queue) and not view.is_never_sent
        ]
        return {uid for _, _, uid in heapq.nsmallest(FIRST_FEW, waiting)}

    def _advance(self, uid: str, moment: Moment) -> Iterator[messages.Action]:
        view = self.known.views.get(uid)
        if view is None:
            return
        if not view.is_left:
            del self.known.views[uid]
            return
        look = self._look(view, moment)
        for each in next_writes(look):
            if isinstance(each, messages.TakeLease):
                yield from self._take_lease(each, moment, look.wakes)
            else:
                yield self._act(view, *each, moment)
        if look.wakes:
            self._wake(uid, min(look.wakes))

    def _look(self, view: View, moment: Moment) -> Look:
        queue = view.turn.queue if view.turn is not None else ""
        return Look(
            view=view,
            members=self.known.members,
            clusters=self.known.queues.get(queue),
            lost_after=self.known.lost_after.get(queue, 0),
            may_ask=view.uid in self._asked.get(queue, ()),
            moves=view.uid in self._moving,
            manager=self.known.manager,
            moment=moment,
        )

    def _act(self, view: View, lane: str, deed: messages.Deed, moment: Moment) -> messages.Act:
        self._tickets += 1
        view.under_way[lane] = self._tickets, messages.place_of(deed)
        if isinstance(deed, messages.WriteRecord):
            view.told_at = moment.now
        elif isinstance(deed, messages.MirrorStatus):
            view.mirrored, view.mirrored_at = deed.status, moment.now
            view.settling.end()  # what changes before it is written is news of its own
        elif isinstance(deed, messages.GiveLeave):
            view.leave.told = deed.member, deed.answer.metadata.uid, deed.until
        elif isinstance(deed, messages.TellWarning):
            del view.warnings.pending[deed.reason]
        return messages.Act(view.uid, lane, self._tickets, deed)

    def _renew(self, name: str, moment: Moment) -> Iterator[messages.TakeLease]:
        """Write a member's stamp back where gangs stop there without it."""
        member, lease = self.known.members[name], self._leases.setdefault(name, _Lease())
        if not member.up or lease.due > moment.now:
            return
        fence = min(self.known.fences(member), default=0)
        lease.due = moment.now + (stamp_seconds(fence) if fence else LOOK_EVERY)
        if fence:
            asked = messages.TakeLease(name, 0, self.known.manager, self.known.leader.term)
            yield from self._take_lease(asked, moment, [])

    def _take_lease(
        self, asked: messages.TakeLease, moment: Moment, wakes: list[float]
    ) -> Iterator[messages.TakeLease]:
        """Write the term on a member, once for all gangs that need it."""
        lease = self._leases.setdefault(asked.member, _Lease())
        if lease.ticket:
            return
        if lease.pause.not_before > moment.now:
            wakes.append(lease.pause.not_before)
            return
        self._tickets += 1
        lease.ticket = self._tickets
        yield replace(asked, ticket=self._tickets)

    def _wake(self, uid: str, at: float) -> None:
        known = self._wake_of.get(uid)
        if known is None or at < known:
            self._wake_of[uid] = at
            heapq.heappush(self._wakes, (at, uid))

"""Keeps the known state of members, of queues, and of Ray objects that may be sent. Pure."""

from collections.abc import Iterable, Iterator

from dispatcher.candidates import NEVER, Member
from dispatcher.protocol.dispatching import Leader, lost_since
from dispatcher.reading import (
    Answer,
    Copy,
    Original,
    Queue,
    QueueRoom,
    Thing,
    Turn,
    Warned,
    path_of,
)
from dispatcher.view import HARMLESS, OLDER, View, version_of
from dispatcher.warned import subject, text
from kube.objects.clusters.dispatch import CLOSED, STARTED
from kube.objects.clusters.member_cluster import MemberCluster
from kube.objects.clusters.queue_clusters import QueueClusters
from runtime.controller.moment import Moment

Uids = Iterable[str]


class Known:
    """All that was seen. Its methods return the uids of what a change matters to."""

    def __init__(self) -> None:
        self.views: dict[str, View] = {}
        self.members: dict[str, Member] = {}
        self.queues: dict[str, QueueClusters] = {}
        self.lost_after: dict[str, int] = {}
        """By queue, as `Queue` has it."""
        self.manager = ""
        """The uid of the manager's kube-system."""
        self.leader = Leader(0, 0.0)

    def begin_term(self, term: int, manager: str, now: float) -> Uids:
        """Forget what an earlier term knew of members; all of it is seen anew."""
        self.leader, self.manager = Leader(term, now), manager
        for member in self.members.values():
            member.up, member.why_down, member.term, member.renewed_at = False, "", 0, NEVER
        for view in self.views.values():
            view.begin_term(self._leader())
        return list(self.views)

    def _leader(self) -> Leader:
        """Return what the leader knows of a gang that it has not written of yet."""
        return Leader(self.leader.term, self.leader.began, self.leader.copied_at)

    def see(self, where: str, thing: Thing, moment: Moment) -> Uids:
        """Take in that an object is there, or not what it was."""
        found: Uids
        match thing:
            case Original():
                found = self._original(thing)
            case Turn():
                found = self._turn(thing)
            case Answer() | Copy():
                found = self._on_member(where, thing, moment)
            case Queue(metadata, clusters, lost_after):
                self.lost_after[metadata.name] = lost_after
                found = self._queue(metadata.name, clusters)
            case MemberCluster():
                found = self._member(thing)
            case Warned():
                found = self._warned(where, thing, moment.now)
            case QueueRoom():
                found = self._room(where, thing.metadata.name, thing)
        return found

    def _original(self, thing: Original) -> Uids:
        view = self._view(thing.metadata.uid)
        if view.original is None or _is_newer(view.original, thing):
            view.original = thing
        return (view.uid,)

    def _turn(self, thing: Turn) -> Uids:
        if not thing.of:
            return ()
        view = self._view(thing.of)
        if view.turn is None or _is_newer(view.turn, thing):
            self._count(view, thing)
        return (view.uid,)

    def _count(self, view: View, turn: Turn | None) -> None:
        """Take a Gang, and note the member on record."""
        for name in {view.cluster} & self.members.keys():
            self.members[name].gangs.discard(view.uid)
        view.turn = turn
        for name in {view.cluster} & self.members.keys():
            self.members[name].gangs.add(view.uid)
        if turn is not None and turn.dispatch is not None and turn.dispatch.phase == STARTED:
            view.next_attempt.end()

    def _on_member(self, where: str, thing: Answer | Copy, moment: Moment) -> Uids:
        """Take what a member has; not what belongs to another manager."""
        if where not in self.members or not thing.of:
            return ()
        view = self._view(thing.of)
        if isinstance(thing, Copy):
            copies = view.copies.setdefault(where, {})
            known = copies.get(path_of(thing))
            if known is None or _is_newer(known, thing):
                copies[path_of(thing)] = thing
        elif thing.manager == self.manager:
            answers = view.answers.setdefault(where, {})
            answer = answers.get(thing.metadata.name)
            if answer is None or _is_newer(answer, thing):
                answers[thing.metadata.name] = thing
                self._note_refusal(view, where, thing, moment)
        return (view.uid,)

    def _note_refusal(self, view: View, where: str, answer: Answer, moment: Moment) -> None:
        """Take in that a member closed an offer, for a reason that it will have for some time."""
        why = OLDER if view.is_older(answer) else f"{answer.reason}: {answer.message}"
        lasts = why == OLDER or answer.reason not in HARMLESS
        if answer.phase == CLOSED and lasts and not answer.is_withdrawn:
            view.aversion(where).grow(answer, why, moment.now)

    def _queue(self, name: str, clusters: QueueClusters | None) -> Uids:
        if self.queues.get(name) == clusters:
            return ()
        if clusters is None:
            self.queues.pop(name, None)
        else:
            self.queues[name] = clusters
        return [uid for uid, view in self.views.items() if view.turn and view.turn.queue == name]

    def _warned(self, where: str, warned: Warned, now: float) -> Uids:
        """Take a Warning; matters where it is about what is on record there."""
        member = self.members.get(where)
        views = (self.views.get(uid) for uid in member.gangs) if member is not None else ()
        originals = (view.original for view in views if view is not None)
        about = subject(warned, (each for each in originals if each is not None))
        if about is None:
            return ()
        uid = about.metadata.uid
        told = self.views[uid].warnings.take(warned.reason, text(where, warned), now)
        return (uid,) if told else ()

    def _room(self, where: str, queue: str, room: QueueRoom) -> Uids:
        """Take what still fits on a member; matters to the gangs that wait for one."""
        member = self.members.get(where)
        if member is None or member.rooms.get(queue, QueueRoom(room.metadata, ())) == room:
            return ()
        member.rooms[queue] = room
        return [uid for uid, view in self.views.items() if view.waits_in(queue)]

    def _member(self, cluster: MemberCluster) -> Uids:
        name = cluster.metadata.name
        known = self.members.get(name)
        if known is None:
            self.members[name] = Member(cluster)
            self.members[name].gangs = {u for u, v in self.views.items() if v.cluster == name}
            return self.involved()
        before, known.cluster = known.cluster, cluster
        same = before.spec == cluster.spec and before.metadata.labels == cluster.metadata.labels
        return () if same else self.involved()

    def is_gone(self, where: str, thing: Thing) -> bool:
        """Say whether a write tells of an offer that ends, and a watch that it is gone already."""
        if not isinstance(thing, Answer) or not thing.is_withdrawn or thing.of not in self.views:
            return False
        return thing.metadata.name not in self.views[thing.of].answers.get(where, {})

    def forget(self, where: str, thing: Thing, moment: Moment) -> Uids:
        """Take in that an object is there no more."""
        match thing:
            case Queue(metadata):
                return self._queue(metadata.name, None)
            case MemberCluster(metadata=metadata):
                self.lose(metadata.name)
                self.leader.copied_at[metadata.name] = moment.now
                self.members.pop(metadata.name, None)
                return self.involved()
            case QueueRoom(metadata=metadata):
                return self._room(where, metadata.name, QueueRoom(metadata, ()))
            case Original(metadata=metadata) if metadata.uid in self.views:
                self.views[metadata.uid].original = None
                return (metadata.uid,)
            case Turn() | Copy() | Answer() if thing.of in self.views:
                self._forget_of(self.views[thing.of], where, thing)
                return (thing.of,)
        return ()

    def _forget_of(self, view: View, where: str, thing: Turn | Copy | Answer) -> None:
        match thing:
            case Turn(metadata=metadata):
                if view.turn is not None and view.turn.metadata.uid == metadata.uid:
                    self._count(view, None)
            case Copy():
                view.copies.get(where, {}).pop(path_of(thing), None)
            case Answer(metadata=metadata):
                view.answers.get(where, {}).pop(metadata.name, None)

    def fences(self, member: Member) -> Iterator[int]:
        """Yield after how many seconds without a renewal gangs of a member stop."""
        for uid in member.gangs:
            found = self.views[uid].dispatch
            if found is not None and found.lost_after_seconds:
                yield found.lost_after_seconds

    def silences(self, now: float) -> Iterator[tuple[str, float]]:
        """Yield for how long members were not heard of, as a share of what their gangs outlast."""
        for name, member in self.members.items():
            fence = min(self.fences(member), default=0)
            if fence:
                since = max(member.renewed_at, lost_since(self.leader, name))
                yield name, (now - since) / fence

    def lose(self, member: str) -> None:
        """Forget what was seen of a member."""
        if member in self.members:
            self.members[member].rooms = {}
        for view in self.views.values():
            view.lose(member)

    def involved(self) -> Uids:
        """List those that members matter to."""
        return [uid for uid, view in self.views.items() if _is_involved(view)]

    def _view(self, uid: str) -> View:
        view = self.views.get(uid)
        if view is None:
            view = self.views[uid] = View(uid, leader=self._leader())
        return view


def _is_involved(view: View) -> bool:
    return view.original is not None or bool(view.answers)


def _is_newer(before: Thing, now: Thing) -> bool:
    """Say whether what came is not older than what is known: answers overtake watches."""
    old, new = before.metadata, now.metadata
    if old.uid != new.uid:
        return True
    return version_of(new.resource_version) >= version_of(old.resource_version)

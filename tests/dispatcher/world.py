"""Plays the API servers and the coordinators around the dispatcher's state machine.

What it asks for is carried out at once, in the order it came, but for members that hang: what is
for them waits. Coordinators of members go by `dispatcher.protocol.offering`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import msgspec

from appwrapper.status.sent import Waits
from dispatcher.messages import (
    HERE,
    Act,
    Action,
    AskMember,
    CloseRecord,
    CreateCopy,
    Done,
    Ended,
    Event,
    Failed,
    GiveLeave,
    Gone,
    LeaseTaken,
    MemberDown,
    MemberUp,
    MirrorStatus,
    NotAllowed,
    PatchCopy,
    PatchOffer,
    Seen,
    TakeLease,
    TellWarning,
    TermEnded,
    TermStarted,
    TimePassed,
    WithdrawOffer,
    WriteRecord,
    place_of,
)
from dispatcher.protocol.offering import stop_seconds
from dispatcher.reading import (
    Answer,
    Copy,
    Original,
    Queue,
    QueueRoom,
    RayObject,
    Thing,
    Turn,
    copy_of,
)
from dispatcher.state_machine import DispatcherState
from kube.codec.fields import moment_of, stamp_of
from kube.gang.sent import kind_of
from kube.objects.base import ObjectMeta
from kube.objects.clusters.dispatch import CLOSED, GangDispatch
from kube.objects.clusters.queue_clusters import QueueClusters
from kube.objects.queues.queue import QueueHole
from runtime.controller.moment import Moment
from tests.dispatcher.objects import GPU, MANAGER, Json, member_cluster, meta, original


@dataclass
class FakeMember:
    """A member: what it has, and how many gangs its nodes hold."""

    name: str
    room: int
    answers: dict[str, Answer] = field(default_factory=dict)
    copies: dict[str, Copy] = field(default_factory=dict)
    lease: int = 0
    renewed: float = float("-inf")
    """When a stamp of its coordinator was written back last."""
    stamps: bool = True
    """Whether its coordinator is there, and stamps."""
    is_old: bool = False
    """Whether its definition of GangOffer knows no fence."""
    forbids: set[str] = field(default_factory=set)
    """Names of gangs that it does not let their creators create."""
    stoppable: int = 0
    """Gangs that it may stop, with leave."""
    lacks: str = "InsufficientResources"
    """The reason that it gives where it has no room; empty while its coordinator is away."""
    refuses: bool = False
    """Whether its API server takes no GangOffers."""
    keeps_lease: bool = False
    """Whether its Lease cannot be written, so that nothing is accepted there."""
    hangs: bool = False
    waiting: list[Action] = field(default_factory=list)

    @property
    def free(self) -> int:
        held = [each for each in self.answers.values() if each.phase in ("Offered", "Started")]
        return self.room - len(held)


class World:
    """A manager and members around one leader."""

    def __init__(
        self, clusters: QueueClusters | None = None, *, lost_after: int = 0, **rooms: int
    ) -> None:
        self.now = 1000.0
        self.state = DispatcherState()
        self.members = {name: FakeMember(name, room) for name, room in rooms.items()}
        self.turns: dict[str, Turn] = {}
        self.originals: dict[str, Original] = {}
        self.statuses: dict[str, Json] = {}
        self.log: list[Action] = []
        self.term = 0
        self.clock_ahead = 0.0
        """Of the leader, in seconds."""
        self.refuse: set[type] = set()
        """Kinds of writes that fail from now on."""
        self._versions = count(10)
        self.clusters = clusters or QueueClusters()
        self.write_queue(lost_after)
        for name in rooms:
            self.tell(Seen(HERE, member_cluster(name)))
        self.lead()

    # ---- what happens

    def lead(self) -> None:
        """Have another leader begin; it connects to all members that do not hang."""
        self.term += 1
        self.tell(TermEnded(), TermStarted(self.term, MANAGER))
        for member in self.members.values():
            if member.hangs:
                self.tell(MemberDown(member.name, "it hangs"))
            else:
                self.connect(member.name)

    def connect(self, name: str) -> None:
        member = self.members[name]
        for answer in member.answers.values():
            self.tell(Seen(name, answer))
        for copy in member.copies.values():
            self.tell(Seen(name, copy))
        self.tell(MemberUp(name))

    def cut(self, name: str) -> None:
        """Lose a member; what is on its way there may arrive much later."""
        self.tell(MemberDown(name, "no answer"))

    def arrive(self, name: str) -> None:
        """Have what is on its way to a member arrive at last."""
        member = self.members[name]
        waiting, member.waiting = member.waiting, []
        for action in waiting:
            self.carry_out(action)

    def heal(self) -> None:
        """Have all be well again."""
        self.refuse = set()
        for member in self.members.values():
            member.hangs = False
            self.arrive(member.name)
            self.connect(member.name)

    def write_queue(self, lost_after: int) -> None:
        """Have its owner write what becomes of gangs on a lost cluster."""
        self.tell(Seen(HERE, Queue(ObjectMeta(name="all"), self.clusters, lost_after)))

    def submit(self, name: str, *, waits: Waits | None = None, **more: Any) -> None:
        """Create an object, whose turn it is unless it says why it waits."""
        found = original(name, **more)
        self.originals[found.metadata.uid] = found
        self.tell(Seen(HERE, found))
        self.write_turn(name, is_its_turn=waits is None, waits=waits)

    def edit(self, name: str, **more: Any) -> None:
        """Have its user write another spec."""
        before = self.originals[f"uid-{name}"].metadata
        version, generation = str(next(self._versions)), before.generation + 1
        found = original(name, resource_version=version, generation=generation, **more)
        self.originals[found.metadata.uid] = found
        self.tell(Seen(HERE, found))

    def delete(self, name: str) -> None:
        found, turn = self.originals.pop(f"uid-{name}"), self.turns.pop(name)
        self.tell(Gone(HERE, found), Gone(HERE, turn))

    def write_turn(self, name: str, **fields: Any) -> None:
        """Write what the manager's coordinator says of a gang."""
        known = self.turns.get(name)
        if known is None:
            known = Turn(meta(name, f"gang-{name}"), f"uid-{name}", "all", 0, False, False, None)
        self._store(replace(known, **fields))

    def dispatch(self, name: str) -> GangDispatch:
        found = self.turns[name].dispatch
        assert found is not None
        return found

    def _store(self, turn: Turn) -> Turn:
        found = replace(turn, metadata=self._newer(turn.metadata))
        self.turns[found.metadata.name] = found
        self.tell(Seen(HERE, found))
        return found

    def _newer(self, found: ObjectMeta, **more: Any) -> ObjectMeta:
        version = str(next(self._versions))
        return msgspec.structs.replace(found, resource_version=version, **more)

    def show_room(self, member: str, *, pods: int, queue: str = "all") -> None:
        """Have a GangQueue of a member show how many pods of 8 GPUs fit."""
        hole = QueueHole(resource=GPU, size=8, pods=pods, at_most=pods)
        self.tell(Seen(member, QueueRoom(ObjectMeta(name=queue), (hole,))))

    def ask_for_nodes(self, member: str, queue: str = "all") -> None:
        """Have a GangQueue of a member ask for nodes where it lacks room."""
        self.tell(Seen(member, QueueRoom(ObjectMeta(name=queue), (), provisions=True)))

    # ---- how it goes on

    def tell(self, *events: Event) -> None:
        """Tell the state machine, and carry out what it asks for."""
        moment = Moment(self.now, "2026-01-01T00:00:00Z", self.now + self.clock_ahead)
        for action in self.state.handle(events, moment):
            self.log.append(action)
            member = self.members.get(_place(action))
            if member is not None and member.hangs:
                member.waiting.append(action)
            else:
                self.carry_out(action)

    def settle(self, seconds: float = 0.0, *, each: float = 0.5) -> None:
        """Let coordinators look, and time pass."""
        end = self.now + seconds
        while True:
            for member in self.members.values():
                self._look(member)
            self._hear()
            self.tell(TimePassed())
            if self.now >= end:
                return
            self.now += each

    def _look(self, member: FakeMember) -> None:
        """Have the coordinator of a member see to its offers, the oldest first."""
        for name, answer in list(member.answers.items() if member.lacks else ()):
            after = self._moved(member, answer)
            if after is None:
                del member.answers[name]
                member.copies.pop(answer.of, None)
                self._tell_of(member, Gone(member.name, answer))
            elif after != answer:
                self._put(member, after)

    def _moved(self, member: FakeMember, answer: Answer) -> Answer | None:
        if answer.is_withdrawn:
            return None
        if self._has_run_out(member, answer):
            member.copies.pop(answer.of, None)
            return replace(answer, phase="Closed", reason="ManagerLost", message="away for long")
        if answer.phase == "Offered" and answer.accepted_by >= max(member.lease, 1):
            return replace(answer, phase="Started")
        if answer.phase in ("", "Asked"):
            may_stop = moment_of(answer.may_stop_until) > self.now
            if may_stop and member.stoppable and member.free <= 0:
                member.stoppable, member.room = member.stoppable - 1, member.room + 1
            if member.free > 0:
                return replace(answer, phase="Offered", reason="", message="")
            said = "0 of 2 workers fit"
            return replace(answer, phase="Asked", reason=member.lacks, message=said)
        return answer

    def _has_run_out(self, member: FakeMember, answer: Answer) -> bool:
        if not (answer.lost_after and answer.accepted_by) or answer.phase == "Closed":
            return False
        return self.now >= member.renewed + answer.lost_after - stop_seconds(answer.lost_after)

    def _hear(self) -> None:
        """Have the manager's coordinator hear of what is closed: it is its turn anew."""
        for turn in list(self.turns.values()):
            if turn.dispatch is not None and turn.dispatch.phase == CLOSED and not turn.is_its_turn:
                self.write_turn(turn.metadata.name, is_its_turn=True)

    def close(self, member: str, name: str, reason: str) -> None:
        """Have a member end what it has of a gang."""
        found = self.members[member]
        for answer in list(found.answers.values()):
            if answer.of == f"uid-{name}":
                found.copies.pop(answer.of, None)
                self._put(found, replace(answer, phase="Closed", reason=reason, message="so it is"))

    def say(self, member: str, name: str, reason: str, message: str) -> None:
        """Have a member say why a gang that started there is not whole."""
        found = self.members[member]
        for answer in list(found.answers.values()):
            if answer.of == f"uid-{name}":
                self._put(found, replace(answer, reason=reason, message=message))

    def _put(self, member: FakeMember, answer: Answer) -> Answer:
        found = replace(answer, metadata=self._newer(answer.metadata))
        member.answers[found.metadata.name] = found
        self._tell_of(member, Seen(member.name, found))
        return found

    def _tell_of(self, member: FakeMember, event: Event) -> None:
        if not member.hangs:
            self.tell(event)

    # ---- what is written

    def carry_out(self, action: Action) -> None:
        if isinstance(action, TakeLease):
            member = self.members[action.member]
            if member.keeps_lease:
                self.tell(LeaseTaken(member.name, action.ticket, action.term, "403: no right"))
                return
            member.lease = max(member.lease, action.term)
            renewed = member.stamps and any(a.lost_after for a in member.answers.values())
            member.renewed = self.now if renewed else member.renewed
            self.tell(LeaseTaken(action.member, action.ticket, action.term, renewed=renewed))
            return
        place = self.members.get(place_of(action.deed))
        if type(action.deed) in self.refuse or (place is not None and place.refuses):
            result: Done | Failed | NotAllowed = Failed("refused")
        elif self._forbids(action):
            answer = getattr(action.deed, "answer", None)
            result = NotAllowed("user ann may not", answer.metadata.uid if answer else "")
        else:
            result = self._written(action)
        self.tell(Ended(action.uid, action.lane, action.ticket, result))

    def _forbids(self, action: Act) -> bool:
        """Say whether a member does not let the creator, where it is asked for that."""
        original = getattr(action.deed, "creator_of", None)
        if original is None:
            return False
        return original.metadata.name in self.members[place_of(action.deed)].forbids

    def _written(self, action: Act) -> Done | Failed:
        match action.deed:
            case WriteRecord(turn, dispatch):
                return self._record(turn, dispatch)
            case CloseRecord(member, turn, dispatch, _, offer):
                found = self.members[member].answers.get(offer)
                if found is not None and found.phase != "Closed":
                    return Done(((member, found),))
                return self._record(turn, dispatch)
            case MirrorStatus(found, status):
                return self._mirror(found, status)
            case TellWarning():
                return Done()
            case deed:
                return self._done_on(self.members[deed.member], deed)

    def _record(self, turn: Turn, dispatch: GangDispatch) -> Done | Failed:
        name = turn.metadata.name
        known = self.turns[name]
        if known.metadata.resource_version != turn.metadata.resource_version:
            return Failed("409")
        its_turn = known.is_its_turn and dispatch.phase != CLOSED
        after = replace(known, dispatch=dispatch, is_its_turn=its_turn)
        after = replace(after, metadata=self._newer(after.metadata))
        self.turns[name] = after
        return Done(((HERE, after),))

    def _mirror(self, found: Original, status: Json) -> Done:
        uid = found.metadata.uid
        self.statuses[found.metadata.name] = status
        version = self._newer(self.originals[uid].metadata)
        self.originals[uid] = replace(
            self.originals[uid], status=msgspec.json.encode(status), metadata=version
        )
        return Done(((HERE, self.originals[uid]),))

    def _done_on(self, member: FakeMember, deed: Any) -> Done | Failed:
        try:
            if isinstance(deed, GiveLeave):
                return Done(((member.name, self._give_leave(member, deed)),))
            return Done(tuple(self._on_member(member, deed)))
        except KeyError:
            return Failed("404: it is there no more")

    def _give_leave(self, member: FakeMember, deed: GiveLeave) -> Answer:
        found = member.answers[deed.answer.metadata.name]
        if found.metadata != deed.answer.metadata:
            raise KeyError(found.metadata.name)
        until = "" if member.is_old else stamp_of(deed.ends)  # its clock is that of the world
        return self._put(member, replace(found, may_stop_until=until))

    def _on_member(self, member: FakeMember, deed: Any) -> Iterable[tuple[str, Thing]]:
        match deed:
            case AskMember(body=body):
                name, spec = body["metadata"]["name"], body["spec"]
                if name not in member.answers:
                    made = meta(name, f"offer-{name}-{member.name}-{next(self._versions)}")
                    fence = 0 if member.is_old else spec.get("lostAfterSeconds", 0)
                    asked = spec["manager"], spec["uid"], spec["attempt"]
                    answer = Answer(made, *asked, 0, "", "", "", lost_after=fence)
                    member.answers[name] = replace(answer, metadata=self._newer(made))
                yield member.name, member.answers[name]
            case PatchOffer(answer=answer, operations=operations):
                found = member.answers[answer.metadata.name]
                if found.metadata.resource_version == answer.metadata.resource_version:
                    found = replace(found, accepted_by=operations[-1]["value"])
                    found = replace(found, metadata=self._newer(found.metadata))
                    member.answers[answer.metadata.name] = found
                yield member.name, found
            case WithdrawOffer(answer=answer):
                known = member.answers.get(answer.metadata.name)
                if known is not None and known.metadata.uid == answer.metadata.uid:
                    going = self._newer(known.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
                    member.answers[answer.metadata.name] = replace(known, metadata=going)
                    yield member.name, member.answers[answer.metadata.name]
            case CreateCopy(body=body):
                yield member.name, self._copy(member, body)
            case PatchCopy(copy=copy, operations=operations):
                before = member.copies[copy.of]
                newer, sent = self._newer(before.metadata), operations[-1]["value"]
                member.copies[copy.of] = replace(before, sent=sent, metadata=newer)
                yield member.name, member.copies[copy.of]

    def _copy(self, member: FakeMember, body: Json) -> Copy:
        raw = msgspec.convert(
            {
                **body,
                "metadata": {**body["metadata"], "uid": "copy", "resourceVersion": "5"},
            },
            type=dict,
        )
        kind = kind_of(body["apiVersion"], body["kind"])
        found = copy_of(msgspec.json.decode(msgspec.json.encode(raw), type=RayObject), kind)
        member.copies[found.of] = found
        return found

    def report(self, member: str, name: str, **status: Any) -> None:
        """Have KubeRay of a member write the status of a copy."""
        found = self.members[member].copies[f"uid-{name}"]
        written = msgspec.json.encode(status)
        after = replace(found, status=written, metadata=self._newer(found.metadata))
        self.members[member].copies[found.of] = after
        self.tell(Seen(member, after))

    # ---- what is seen

    def runs(self) -> dict[str, list[str]]:
        """By gang the members on which it is started."""
        found: dict[str, list[str]] = {}
        for member in self.members.values():
            for answer in member.answers.values():
                if answer.phase == "Started":
                    found.setdefault(answer.of.removeprefix("uid-"), []).append(member.name)
        return found

    def written(self, kind: type) -> list[Any]:
        """The deeds of a kind that were asked for, in their order."""
        return [
            each.deed for each in self.log if isinstance(each, Act) and isinstance(each.deed, kind)
        ]


def _place(action: Action) -> str:
    return action.member if isinstance(action, TakeLease) else place_of(action.deed)

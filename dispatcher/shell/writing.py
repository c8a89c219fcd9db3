"""Carries out the actions of the state machine on the manager and on one member. Decides nothing.

The writes for a member wait for that member alone.
"""

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
import structlog

from dispatcher.copies import leave
from dispatcher.messages import (
    HERE,
    Act,
    Action,
    AskMember,
    CloseRecord,
    CreateCopy,
    Deed,
    Done,
    Ended,
    Event,
    Failed,
    GiveLeave,
    LeaseTaken,
    MirrorStatus,
    NotAllowed,
    PatchCopy,
    PatchOffer,
    TakeLease,
    TellWarning,
    WithdrawOffer,
    WriteRecord,
    place_of,
)
from dispatcher.metrics import Metrics
from dispatcher.protocol.objects import Phase
from dispatcher.reading import OfferObject, RayObject, Thing, Turn, answer_of, copy_of, written_turn
from dispatcher.shell.rights import RefusedCreator, check_creator
from kube.api.client import Client
from kube.api.errors import Conflict, KubeError, NotFound
from kube.api.event_recorder import EventRecorder, ObjectEvent
from kube.api.kinds import Kinds
from kube.api.lease import Lease
from kube.api.resources import GANG_OFFERS, GANGS, LEASES
from kube.codec.fields import stamp_of
from kube.gang.sent import RESOURCES, kind_of, typed
from kube.objects import names
from kube.objects.clusters.dispatch import GangDispatch
from kube.objects.gang import Gang
from runtime.controller.workers import Feed, Leadership, Workers
from runtime.controller.write_lanes import Writes

log = structlog.get_logger(__name__)

REPORTER = "muster.dev/dispatcher"

Json = dict[str, Any]


class _Writer:
    """Orders writes by object, and feeds back how each ended."""

    place = HERE

    def __init__(
        self, term: Leadership, feed: Feed[Event], concurrency: int, metrics: Metrics
    ) -> None:
        self._term, self._metrics = term, metrics
        self._writes = Writes[str, Action]()
        self._workers = Workers(self._writes, self._carry_out, feed, term, concurrency)
        self.run: Callable[[], Awaitable[None]] = self._workers.run
        self.close = self._workers.close

    def submit(self, actions: Iterable[Action]) -> None:
        """Queue the actions, and start as many as may run."""
        for each in actions:
            self._add(each, time.monotonic())
        self._workers.start()

    def _add(self, action: Action, now: float) -> None:
        match action:
            case TakeLease(member=member):
                self._writes.add(member, action, now)
            case Act(deed=WriteRecord(informs=True) | MirrorStatus() | TellWarning()):
                self._writes.inform(action, now)
            case Act(uid=uid):
                self._writes.add(uid, action, now)

    async def _carry_out(self, action: Action) -> list[Event]:
        what = type(action if isinstance(action, TakeLease) else action.deed).__name__
        try:
            event = await self._done(action)
        except KubeError as error:
            self._metrics.writes.labels(self.place, what, "failed").inc()
            log.info("write failed", what=what, cluster=self.place, error=str(error))
            return [not_done(action, str(error))]
        except RefusedCreator as error:
            self._metrics.writes.labels(self.place, what, "refused").inc()
            return [_not_allowed(action, str(error))]
        self._metrics.writes.labels(self.place, what, "done").inc()
        return [event]

    async def _done(self, action: Action) -> Event:
        if isinstance(action, TakeLease):
            renewed = await self.take_lease(action)
            return LeaseTaken(action.member, action.ticket, action.term, renewed=renewed)
        things = await self.write(action.deed)
        return Ended(action.uid, action.lane, action.ticket, Done(tuple(things)))

    async def take_lease(self, asked: TakeLease) -> bool:
        """Write the leader's term on a member; the manager has no such Lease."""
        raise NotImplementedError

    async def write(self, deed: Deed) -> list[tuple[str, Thing]]:
        """Carry a deed out; returns what came back, each with where it is."""
        raise NotImplementedError


class ManagerWriter(_Writer):
    """Writes records of gangs, and the status of the objects that are sent."""

    def __init__(
        self,
        client: Client,
        term: Leadership,
        feed: Feed[Event],
        concurrency: int,
        metrics: Metrics,
        identity: str,
    ) -> None:
        super().__init__(term, feed, concurrency, metrics)
        self._client = client
        self._events = EventRecorder(client, REPORTER, identity)

    async def write(self, deed: Deed) -> list[tuple[str, Thing]]:
        """Carry out what concerns the manager alone."""
        match deed:
            case WriteRecord(turn, dispatch, _):
                return [(HERE, await write_record(self._client, turn, dispatch))]
            case MirrorStatus(original, status):
                meta = original.metadata
                path = RESOURCES[original.kind].path(meta.namespace, meta.name, "status")
                await self._client.json_patch(path, _replaced(meta.uid, status))
                return []
            case TellWarning():
                await self._events.write(_event(deed))
                return []
        raise AssertionError(f"{type(deed).__name__} is for a member")


class MemberWriter(_Writer):
    """Writes on one member; closes records of attempts that are over there."""

    def __init__(
        self,
        member: str,
        clients: tuple[Client, Client],
        term: Leadership,
        feed: Feed[Event],
        concurrency: int,
        metrics: Metrics,
        leases: str,
    ) -> None:
        """`clients` are those of the manager and of the member, `leases` the namespace there."""
        super().__init__(term, feed, concurrency, metrics)
        self.place = member
        self._manager, self._client = clients
        self._kinds = Kinds(self._client)
        self._leases = leases

    async def take_lease(self, asked: TakeLease) -> bool:
        """Write the leader's term on the member, and its own stamp back; returns whether it did.

        A newer term there is a Conflict.
        """
        name = f"{names.DISPATCHER_LEASE}-{asked.manager}"
        path, spec = LEASES.path(self._leases, name), {"leaseTransitions": asked.term}
        try:
            found = await self._client.get(path, as_=Lease)
        except NotFound:
            body = {"metadata": {"name": name}, "spec": spec}
            await self._client.create(LEASES.path(self._leases), body)
            return False
        known, notes = found.spec.lease_transitions or 0, found.metadata.annotations or {}
        if known > asked.term:
            raise Conflict(409, "", f"the member knows of a leader of term {known}")
        stamp = notes.get(names.STAMP)
        renews = stamp is not None and stamp != notes.get(names.STAMP_READ)
        if renews or known < asked.term:
            meta: Json = {"resourceVersion": found.metadata.resource_version}
            meta |= {"annotations": {names.STAMP_READ: stamp}} if renews else {}
            await self._client.merge_patch(path, {"metadata": meta, "spec": spec})
        return renews

    async def write(self, deed: Deed) -> list[tuple[str, Thing]]:
        """Carry out what waits for the member; RefusedCreator where its creator may not."""
        match deed:
            case AskMember(_, namespace, body):
                await self._check(deed)
                return await self._ask(namespace, body)
            case PatchOffer() | GiveLeave():
                return await self._patch(deed)
            case WithdrawOffer(_, answer):
                path = GANG_OFFERS.path(answer.metadata.namespace, answer.metadata.name)
                return await self._withdraw(path, answer.metadata.uid)
            case CreateCopy(_, namespace, body):
                kind = kind_of(body["apiVersion"], body["kind"])
                path = RESOURCES[kind].path(namespace)
                made = await self._client.create(path, body, as_=RayObject)
                return [(self.place, copy_of(made, kind))]
            case PatchCopy(_, copy, operations):
                path = RESOURCES[copy.kind].path(copy.metadata.namespace, copy.metadata.name)
                after = await self._client.json_patch(path, operations, as_=RayObject)
                return [(self.place, copy_of(after, copy.kind))]
            case CloseRecord():
                return await self._close(deed)
        raise AssertionError(f"{type(deed).__name__} is for the manager")

    async def _patch(self, deed: PatchOffer | GiveLeave) -> list[tuple[str, Thing]]:
        answer = deed.answer
        if isinstance(deed, PatchOffer):
            await self._check(deed)
            operations = deed.operations
        else:
            until = await self._client.server_time() + deed.ends - time.monotonic()
            operations = leave(answer, stamp_of(until))
        path = GANG_OFFERS.path(answer.metadata.namespace, answer.metadata.name)
        found = await self._client.json_patch(path, operations, as_=OfferObject)
        return [(self.place, answer_of(found))]

    async def _check(self, deed: AskMember | PatchOffer) -> None:
        if deed.creator_of is not None:
            await check_creator(self._client, self._kinds, deed.creator_of)

    async def _ask(self, namespace: str, body: Json) -> list[tuple[str, Thing]]:
        """Create a GangOffer; one that is there already is the same."""
        try:
            found = await self._client.create(GANG_OFFERS.path(namespace), body, as_=OfferObject)
        except Conflict:
            path = GANG_OFFERS.path(namespace, body["metadata"]["name"])
            found = await self._client.get(path, as_=OfferObject)
        return [(self.place, answer_of(found))]

    async def _withdraw(self, path: str, uid: str) -> list[tuple[str, Thing]]:
        try:
            body = await self._client.delete(path, uid=uid)
        except (NotFound, Conflict):
            return []  # it is gone, and another one of that name is not meant
        try:
            found = msgspec.json.decode(body, type=OfferObject)
        except msgspec.DecodeError:
            return []  # a Status: it was gone at once
        return [(self.place, answer_of(found))] if found.metadata.uid == uid else []

    async def _close(self, deed: CloseRecord) -> list[tuple[str, Thing]]:
        """Read that the attempt is over, as it is now, and only then write it."""
        try:
            path = GANG_OFFERS.path(deed.namespace, deed.offer)
            found = await self._client.get(path, as_=OfferObject)
        except NotFound as error:
            if not error.reason:
                raise  # GangOffers are not served at all
        else:
            if found.status.phase != Phase.CLOSED:
                return [(self.place, answer_of(found))]
        if not self._term.valid():
            raise Conflict(409, "", "another replica leads by now")
        return [(HERE, await write_record(self._manager, deed.turn, deed.dispatch))]


def not_done(action: Action, error: str) -> Event:
    """Say that an action was not carried out, or that this is not known."""
    if isinstance(action, TakeLease):
        return LeaseTaken(action.member, action.ticket, action.term, error)
    return Ended(action.uid, action.lane, action.ticket, Failed(error))


def _not_allowed(action: Action, why: str) -> Event:
    """Say that a member does not let the creator of the object."""
    assert not isinstance(action, TakeLease)
    deed = action.deed
    offer = deed.answer.metadata.uid if isinstance(deed, PatchOffer) else ""
    return Ended(action.uid, action.lane, action.ticket, NotAllowed(why, offer))


def target_of_action(action: Action) -> str:
    """Name the member that an action is for; empty for the manager."""
    if isinstance(action, TakeLease):
        return action.member
    return place_of(action.deed)


async def write_record(client: Client, turn: Turn, dispatch: GangDispatch) -> Turn:
    """Write a record on the version of the Gang that it was decided on; returns the Gang."""
    meta = turn.metadata
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
        {"op": "add", "path": "/status/dispatch", "value": _written(dispatch)},
    ]
    path = GANGS.path(meta.namespace, meta.name, "status")
    return written_turn(await client.json_patch(path, operations, as_=Gang))


def _written(dispatch: GangDispatch) -> Json:
    found: Json = msgspec.to_builtins(dispatch)
    return {key: value for key, value in found.items() if value not in ("", [], (), 0, None)}


def _event(deed: TellWarning) -> ObjectEvent:
    """Return a Warning as it is told of the original."""
    meta, said = deed.original.metadata, typed(deed.original.kind)
    return ObjectEvent(
        namespace=meta.namespace,
        api_version=said["apiVersion"],
        kind=said["kind"],
        name=meta.name,
        uid=meta.uid,
        reason=deed.reason,
        message=deed.message,
        warning=True,
    )


def _replaced(uid: str, status: Json) -> list[Json]:
    return [
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "add", "path": "/status", "value": status},
    ]

"""Writes the answers to GangOffers, and deletes the objects that were created for closed ones."""

from collections.abc import Awaitable

import structlog

from coordinator.messages.events import Event
from coordinator.messages.offer_actions import (
    Closed,
    DeleteCreated,
    HoldOffer,
    OfferAction,
    StampLease,
    StartOffer,
    StopPods,
    WriteOffer,
)
from coordinator.messages.write_ends import LeaseStamped, OfferWriteEnded
from coordinator.metrics import OFFERS
from coordinator.shell.writes.write_outcomes import Outcomes, unchanged
from dispatcher.protocol import objects as protocol
from dispatcher.protocol.offering import may_start
from kube.api.client import Client
from kube.api.errors import (
    ApiError,
    Conflict,
    KubeError,
    NotFound,
    is_of_role,
    is_of_what_goes,
)
from kube.api.lease import Lease
from kube.api.resources import GANG_OFFERS, LEASES, PODS, RAY_CLUSTERS
from kube.codec.pod_patches import Operation
from kube.codec.status_patches import fields_patch
from kube.gang.sent import RESOURCES
from kube.objects import names
from kube.objects.base import Present
from scheduling.model.gang import GangKey

log = structlog.get_logger()


class OfferWrites:
    """Carries out what is to be done to GangOffers."""

    def __init__(self, client: Client, outcomes: Outcomes) -> None:
        self._client = client
        self._outcomes = outcomes

    async def carry_out(self, action: OfferAction) -> list[Event]:
        """Send one write, and say what became of it; which watches tell."""
        match action:
            case WriteOffer():
                return await self._answer(action)
            case StartOffer():
                return await self._start(action)
            case HoldOffer():
                return await self._hold(action)
            case DeleteCreated():
                path = RESOURCES[action.kind].path(action.gang.namespace, action.name)
                deletion = self._client.delete(path, uid=action.uid)
                what = f"{action.kind.partition('.')[0].lower()}_delete"
                return await self._ended(action.gang, action.offer_uid, what, deletion)
            case StopPods():
                stop = self._stop(action)
                return await self._ended(action.gang, action.offer_uid, "offer_stop", stop)
            case StampLease():
                return [await self._stamp(action)]

    async def _hold(self, action: HoldOffer) -> list[Event]:
        value = list(action.finalizers)
        held: Operation = {"op": "add", "path": "/metadata/finalizers", "value": value}
        path = GANG_OFFERS.path(action.gang.namespace, action.name)
        request = self._client.json_patch(path, [*unchanged(action), held], as_=Present)
        ended = await self._ended(action.gang, action.uid, "offer_finalizers", request)
        if action.closes and ended == [OfferWriteEnded(action.gang, action.uid, None)]:
            OFFERS.labels(protocol.Phase.CLOSED, action.closes).inc()
        return ended

    async def _answer(self, action: WriteOffer, term: int = 0) -> list[Event]:
        changes = fields_patch("status", action.status, action.before)
        path = GANG_OFFERS.path(action.gang.namespace, action.name, "status")
        request = self._client.json_patch(path, [*unchanged(action), *changes], as_=Present)
        ended = await self._ended(action.gang, action.uid, "offer_status", request, term)
        phase, is_done = (
            action.status["phase"],
            OfferWriteEnded(action.gang, action.uid, None, term),
        )
        if ended == [is_done] and phase != action.before.phase:
            OFFERS.labels(phase, action.status.get("reason", "")).inc()
        return ended

    async def _start(self, action: StartOffer) -> list[Event]:
        """Start an offer, if the newest leader that is known here has accepted it."""
        write = action.write
        try:
            term = await self._term(action)
        except KubeError as error:
            self._outcomes.failed("offer_lease", error)
            return [OfferWriteEnded(action.gang, write.uid, str(error))]
        accepted = protocol.Offer(0, write.uid, accepted_by=action.accepted_by)
        if not may_start(accepted, protocol.Lease(term)):
            log.info("offer not started", gang=str(action.gang), term=term)
            OFFERS.labels(protocol.Phase.OFFERED, Closed.OTHER_LEADER).inc()
            return [OfferWriteEnded(action.gang, write.uid, None, term)]
        return await self._answer(write, term)

    async def _term(self, action: StartOffer) -> int:
        """Read the term of the manager's leader; 0 where none has written it here."""
        name = f"{names.DISPATCHER_LEASE}-{action.manager}"
        try:
            lease = await self._client.get(LEASES.path(action.home, name), as_=Lease)
        except NotFound:
            return 0
        return lease.spec.lease_transitions or 0

    async def _stop(self, action: StopPods) -> None:
        """Delete all that is named, and raise what one of them was refused with."""
        refused: ApiError | None = None
        place = action.gang.namespace
        clusters = ((RAY_CLUSTERS, *each, None) for each in action.clusters)
        for resource, name, uid, grace in (
            *clusters,
            *((PODS, *each, action.grace) for each in action.pods),
        ):
            path = resource.path(place, name)
            try:
                await self._client.delete(path, uid=uid, grace_period_seconds=grace)
            except (NotFound, Conflict):
                continue  # it is gone
            except ApiError as error:
                refused = error
        if refused is not None:
            raise refused

    async def _stamp(self, action: StampLease) -> Event:
        """Read a Lease, and say on it that this cluster is there."""
        path = LEASES.path(action.gang.namespace, action.gang.name)
        note = {"metadata": {"annotations": {names.STAMP: action.stamp}}}
        try:
            if action.stamp:
                lease = await self._client.merge_patch(path, note, as_=Lease)
            else:
                lease = await self._client.get(path, as_=Lease)
        except NotFound:
            return LeaseStamped(action.manager, None, missing=True)
        except KubeError as error:
            self._outcomes.failed("offer_lease", error)
            log.info("lease of a manager not stamped", manager=action.manager, error=str(error))
            if is_of_role(error):  # as one that is not there: gangs do not run on for want of it
                return LeaseStamped(action.manager, None, missing=True)
            return LeaseStamped(action.manager, str(error))
        copied = (lease.metadata.annotations or {}).get(names.STAMP_READ, "")
        return LeaseStamped(action.manager, None, _seconds(copied))

    async def _ended(
        self, gang: GangKey, uid: str, what: str, request: Awaitable[object], term: int = 0
    ) -> list[Event]:
        try:
            await request
        except KubeError as error:
            self._outcomes.failed(what, error)
            if not is_of_what_goes(error):
                log.info("offer write failed", gang=str(gang), what=what, error=str(error))
            return [OfferWriteEnded(gang, uid, str(error), term)]
        self._outcomes.done(what)
        return [OfferWriteEnded(gang, uid, None, term)]


def _seconds(written: str) -> float:
    """Return a stamp as a number; 0 where it is none: gangs run no longer for it."""
    try:
        return float(written)
    except ValueError:
        return 0.0

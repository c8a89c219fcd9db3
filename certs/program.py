"""Runs the certificate program: one replica leads and checks certificates, the others stand by."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from certs.cluster import Cluster
from certs.keeper import FAULTS, Keeper, Kind, Look
from certs.metrics import Metrics
from kube.api.client import Client
from kube.api.leader_election import Election, Term, Timing
from runtime.connections import Limits
from runtime.http_server import Health, Port, in_background, listening, until

log = structlog.get_logger(__name__)

RETRY = 5.0
"""Seconds until the next look after one that ended in a fault."""

SHORTEST = 0.1
"""Seconds between two looks, at least: what is due now may be due again at once, by a clock that
stands still."""

LOOKS_MISSED = 60.0
"""Seconds beyond the next look after which a leader is not ready: a look is some requests of 10 s
at most."""


def utc_now() -> datetime:
    """Return the time."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Staying:
    """How the program stays."""

    every: float
    """Seconds between two looks."""
    lease: str
    identity: str
    health: tuple[str, int] | None = None
    """Address and port of health and metrics; None: nothing listens."""
    timing: Timing = field(default_factory=Timing)


class Replica:
    """One replica of the program."""

    def __init__(
        self,
        client: Client,
        cluster: Cluster,
        kind: Kind,
        staying: Staying,
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._kind = kind
        self._staying = staying
        self._now = now
        self._said = ""
        self._faults: tuple[str, ...] = ()
        self._leads = False
        self._well_until = 0.0
        self.metrics = Metrics(cluster.place.secret)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until told to stop; the Lease is given back at the end."""
        checks = (("certificates", lambda: self.well),)
        health = Health(checks, self.metrics.registry)
        async with contextlib.AsyncExitStack() as stack:
            if self._staying.health is not None:
                address, number = self._staying.health
                port = Port("health", address, number, limits=Limits())
                served = listening(health.application(), port, self.metrics.connections)
                await stack.enter_async_context(served)
            tasks = await stack.enter_async_context(in_background([self._contend]))
            await until(stop, tasks)
            health.stop()

    @property
    def well(self) -> bool:
        """Whether the last look found all in order, a while ago at most; a stand-by has none."""
        return not self._leads or time.monotonic() < self._well_until

    async def _contend(self) -> None:
        staying = self._staying
        namespace = self._cluster.place.namespace
        election = Election(
            self._client, namespace, staying.lease, staying.identity, timing=staying.timing
        )
        await election.run(self.lead)

    async def lead(self, term: Term) -> None:
        """Look again and again until cancelled."""
        keeper = Keeper(
            self._cluster,
            self._kind,
            now=self._now,
            may_write=term.valid,
            took=self.metrics.count_step,
        )
        self._set_leads(yes=True)
        try:
            while True:
                pause = await self._once(keeper)
                await asyncio.sleep(pause)
        finally:
            self._set_leads(yes=False)

    def _set_leads(self, *, yes: bool) -> None:
        self._leads = yes
        self.metrics.leader.set(yes)

    async def _once(self, keeper: Keeper) -> float:
        """Look once; returns the seconds until the next look."""
        try:
            look = await keeper.look()
        except FAULTS as error:
            return self._failed((str(error), *self._refused(keeper)))
        held = look.seen.held
        restart_by = None if held is None else self._kind.restart_by(held)
        faults = ((look.fault,) if look.fault else ()) + self._refused(keeper)
        self.metrics.tell(look, self._kind.authority, restart_by, self._now(), well=not faults)
        pause = self._done(look, restart_by)
        return self._failed(faults) if faults else pause

    def _refused(self, keeper: Keeper) -> tuple[str, ...]:
        """Return what each configuration that was refused says."""
        self.metrics.refused.set(len(keeper.refused))
        return keeper.refused

    def _failed(self, faults: tuple[str, ...]) -> float:
        self.metrics.failures.inc()
        self._well_until = 0.0
        if faults != self._faults:
            log.error("certificates cannot be kept", reason="; ".join(faults))
        self._faults = faults
        return min(RETRY, self._staying.every)

    def _done(self, look: Look, restart_by: datetime | None) -> float:
        pause = self._staying.every
        if look.plan.until is not None:
            pause = min(pause, (look.plan.until - self._now()).total_seconds())
        pause = max(SHORTEST, pause)
        self._well_until = time.monotonic() + pause + LOOKS_MISSED
        notes = {"until": look.plan.until, "restart_kube_scheduler_by": restart_by}
        dated = {name: each.isoformat() for name, each in notes.items() if each is not None}
        for said in look.said:
            if self._is_new(said):
                log.info(said, waits=look.plan.why, **dated)
        return pause

    def _is_new(self, said: str) -> bool:
        """Tell whether this is not the line before again."""
        before, self._said = self._said, said
        return said != before

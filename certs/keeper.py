"""Looks at the certificates of one server, and takes the steps that are due."""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from certs import rolling, standing
from certs.chain import BACKDATED, CertificateError
from certs.cluster import Cluster, Seen
from certs.held import Held
from certs.plan import Plan, Step
from kube.api.errors import Conflict, Invalid, KubeError

STEPS = 20
"""In one look: a roll-over begins with three, and another process may be quicker a few times."""

CLOCKS = timedelta(minutes=5)
"""So far the clock here may be from the API server's. Certificates begin an hour before they are
made (BACKDATED), so that this does no harm; a clock that is off by days would replace what is good
by what no server takes."""
assert CLOCKS < BACKDATED


class CertsError(Exception):
    """Something in the cluster, or this process, cannot be used; the text says what."""


FAULTS = (KubeError, CertificateError, CertsError)
"""What may be wrong with the cluster or with what it holds; the text says what."""


class Kind(abc.ABC):
    """What the certificates are for, and so in which steps they are replaced."""

    @property
    @abc.abstractmethod
    def authority(self) -> str:
        """The name of our authorities."""

    @abc.abstractmethod
    def next_step(self, seen: Seen, now: datetime) -> Plan:
        """Return what is to be done."""

    @abc.abstractmethod
    def changed(self, step: Step, seen: Seen, now: datetime) -> Held:
        """Return what the Secret holds after a step."""

    def restart_by(self, held: Held) -> datetime | None:  # noqa: ARG002 - most have none
        """Return until when an operator has to restart the callers; None: nothing is to be done."""
        return None


@dataclass(frozen=True)
class OfWebhook(Kind):
    """The API server trusts what caBundle says, and hears of a change while it runs."""

    wanted: rolling.Wanted

    @property
    def authority(self) -> str:
        """The name of our authorities."""
        return self.wanted.authority

    def next_step(self, seen: Seen, now: datetime) -> Plan:
        """Return what is to be done."""
        return rolling.next_step(seen.held, seen.bundles, self.wanted, now)

    def changed(self, step: Step, seen: Seen, now: datetime) -> Held:
        """Return what the Secret holds after a step."""
        return rolling.changed(step, seen.held, seen.bundles, self.wanted, now)


@dataclass(frozen=True)
class OfExtender(Kind):
    """kube-scheduler trusts what it read when it started."""

    wanted: standing.Wanted

    @property
    def authority(self) -> str:
        """The name of our authorities."""
        return self.wanted.authority

    def next_step(self, seen: Seen, now: datetime) -> Plan:
        """Return what is to be done."""
        return standing.next_step(seen.held, self.wanted, now)

    def changed(self, step: Step, seen: Seen, now: datetime) -> Held:
        """Return what the Secret holds after a step."""
        return standing.changed(step, seen.held, self.wanted, now)

    def restart_by(self, held: Held) -> datetime | None:
        """Return until when kube-scheduler has to be started with the new files."""
        return standing.restart_by(held) if held.ours else None


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the cluster found in the end, and did."""

    seen: Seen
    plan: Plan
    said: tuple[str, ...]
    steps: tuple[Step, ...] = ()

    @property
    def fault(self) -> str:
        """What others have to put right; empty where all is well."""
        blocked = (self.plan.why,) if self.plan.step is Step.BLOCKED else ()
        return "; ".join((*self.seen.faults, *blocked))


class Keeper:
    """Keeps the certificates of one server."""

    def __init__(
        self,
        cluster: Cluster,
        kind: Kind,
        *,
        now: Callable[[], datetime],
        may_write: Callable[[], bool] = lambda: True,
        took: Callable[[Step], None] = lambda _: None,
    ) -> None:
        self._cluster = cluster
        self._kind = kind
        self._now = now
        self._may_write = may_write
        self._took = took

    async def look(self) -> Look:
        """Take all the steps that are due now, each after a fresh look."""
        said: list[str] = []
        for _ in range(STEPS):
            seen = await self._cluster.see()
            plan = self._kind.next_step(seen, self._now())
            if plan.step in (Step.WAIT, Step.BLOCKED):
                return Look(seen, plan, tuple(said or [self._kept(seen)]))
            try:
                said += await self._take(plan, seen)
            except (Conflict, Invalid):
                continue  # another process was quicker, or a person
            self._took(plan.step)
        last = f"not done after {STEPS} steps, the last: {plan.step}"
        raise CertsError(f"Secret {self._title}: {last}")

    async def _take(self, plan: Plan, seen: Seen) -> list[str]:
        if plan.step is Step.INJECT:
            return await self._inject(seen)
        await self._expect_agreeing_clocks()
        held = self._kind.changed(plan.step, seen, self._now())
        self._expect_leading()
        if plan.step is Step.CREATE:
            await self._cluster.create(held)
            return [f"Secret {self._title} created"]
        await self._cluster.write(held, seen.version)
        return [f"Secret {self._title}: {plan.step}: {plan.why}"]

    async def _inject(self, seen: Seen) -> list[str]:
        assert seen.held is not None
        ours = self._kind.authority if seen.held.ours else None
        trusting = partial(rolling.trusting, held=seen.held, ours=ours)
        self._expect_leading()
        names = await self._cluster.inject(seen.calling, trusting)
        return [f"caBundle of webhook {each} set" for each in names]

    def _expect_leading(self) -> None:
        if not self._may_write():
            raise CertsError("another replica leads")

    async def _expect_agreeing_clocks(self) -> None:
        theirs, ours = await self._cluster.clock(), self._now()
        if theirs is not None and abs(theirs - ours) > CLOCKS:
            raise CertsError(
                f"the clock here says {ours:%Y-%m-%d %H:%M} UTC and the API server's"
                f" {theirs:%Y-%m-%d %H:%M}: nothing is written until they differ by less than"
                f" {CLOCKS.seconds // 60} minutes"
            )

    def _kept(self, seen: Seen) -> str:
        theirs = "" if seen.held is None or seen.held.ours else ", which muster-certs did not make"
        return f"Secret {self._title} kept{theirs}"

    @property
    def _title(self) -> str:
        return self._cluster.place.title

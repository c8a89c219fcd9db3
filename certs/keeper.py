"""Checks the certificates of one server, and takes the steps that are due."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from certs import rolling, standing
from certs.chain import BACKDATED, CertificateError
from certs.cluster import Calling, Cluster, Seen
from certs.held import Held
from certs.plan import Plan, Step
from certs.refusals import Refusals
from certs.rolling import Bundle
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


class _RefusedError(CertsError):
    """The Secret was refused a moment ago, and is tried again later."""


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
        writable = tuple(each.bundle for each in seen.writable)
        return rolling.next_step(seen.held, writable, self.wanted, now, seen.withheld)

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
    """The outcome of one check of the cluster, and of the steps that it took."""

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
        self._refusals = Refusals()
        self._unread: tuple[str, ...] = ()

    @property
    def refused(self) -> tuple[str, ...]:
        """The configurations that could not be read or written at the last look, and why."""
        standing = self._refusals.standing.items()
        written = (f"{path}: {why}" for path, why in standing if path != self._cluster.path)
        return (*self._unread, *written)

    async def look(self) -> Look:
        """Take all the steps that are due now, each after a fresh look."""
        said: list[str] = []
        for _ in range(STEPS):
            seen = await self._see()
            plan = self._kind.next_step(seen, self._now())
            if plan.step in (Step.WAIT, Step.BLOCKED):
                self._note_well(seen)
                return Look(seen, plan, tuple(said or [self._kept(seen)]))
            done = await self._take(plan, seen)
            if done:
                self._took(plan.step)
            said += done
        last = f"not done after {STEPS} steps, the last: {plan.step}"
        raise CertsError(f"Secret {self._title}: {last}")

    async def _see(self) -> Seen:
        seen = await self._cluster.see()
        self._unread = seen.unread
        resting = self._refusals.resting(self._now())
        there = {each.path for each in seen.calling}
        return replace(seen, resting={path: resting[path] for path in resting if path in there})

    def _note_well(self, seen: Seen) -> None:
        """Nothing is to be done: all that may be written is as it should be."""
        for path in (self._cluster.path, *(each.path for each in seen.writable)):
            self._refusals.well(path)

    async def _take(self, plan: Plan, seen: Seen) -> list[str]:
        """Take a step; returns what was done, nothing where another process was quicker."""
        if plan.step is Step.INJECT:
            ours = self._kind.authority if seen.held is not None and seen.held.ours else None
            return await self._inject(seen, partial(_trusting, held=seen.held, ours=ours))
        try:
            self._expect_not_refused()
            return await self._write(plan, seen)
        except (KubeError, _RefusedError):
            # Whatever is to become of the Secret: what is served stays trusted.
            await self._inject(seen, partial(_with_anchor, held=seen.held))
            raise

    async def _write(self, plan: Plan, seen: Seen) -> list[str]:
        """Write the Secret."""
        await self._expect_agreeing_clocks()
        held, path = self._kind.changed(plan.step, seen, self._now()), self._cluster.path
        self._expect_leading()
        try:
            if plan.step is Step.CREATE:
                await self._cluster.create(held)
                return [f"Secret {self._title} created"]
            await self._cluster.write(held, seen.version)
        except (Conflict, Invalid) as error:  # another process was quicker, or a person
            self._refusals.raced(path, str(error), self._now())
            return []
        except KubeError as error:
            self._refusals.refused(path, str(error), self._now())
            raise
        return [f"Secret {self._title}: {plan.step}: {plan.why}"]

    async def _inject(self, seen: Seen, trusting: Callable[[Bundle], Bundle]) -> list[str]:
        """Fill each configuration by itself: one that is refused holds up no other."""
        names: list[str] = []
        for path in dict.fromkeys(each.path for each in seen.writable):
            there = [each for each in seen.writable if each.path == path]
            self._expect_leading()
            names += await self._fill(path, there, trusting)
        return [f"caBundle of webhook {each} set" for each in names]

    async def _fill(
        self, path: str, there: Sequence[Calling], trusting: Callable[[Bundle], Bundle]
    ) -> list[str]:
        try:
            names = await self._cluster.inject(there, trusting)
        except (Conflict, Invalid) as error:
            self._refusals.raced(path, str(error), self._now())
        except KubeError as error:
            self._refusals.refused(path, str(error), self._now())
        else:
            if names:
                self._refusals.raced(path, "caBundle is changed back at once", self._now())
            return names
        return []

    def _expect_not_refused(self) -> None:
        why = self._refusals.resting(self._now()).get(self._cluster.path)
        if why is not None:
            raise _RefusedError(f"Secret {self._title} cannot be written: {why}")

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
        if seen.held is None or seen.held.ours:
            return f"Secret {self._title} kept"
        return f"Secret {self._title} left alone: {seen.held.theirs}"

    @property
    def _title(self) -> str:
        return self._cluster.place.title


def _trusting(bundle: Bundle, held: Held | None, ours: str | None) -> Bundle:
    assert held is not None
    return rolling.trusting(bundle, held, ours)


def _with_anchor(bundle: Bundle, held: Held | None) -> Bundle:
    """Add the authority of what is served, and take nothing away."""
    anchor = None if held is None else held.anchor
    return bundle if anchor is None or anchor in bundle else (*bundle, anchor)

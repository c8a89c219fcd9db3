"""Elects one leader by a Lease; a term ends before another can begin.

A Lease is written conditionally on its resourceVersion, so of two contenders one wins. No wall
clocks are compared. The holder counts from the moment before it sent the write that renewed the
Lease and stops `renew_deadline` later; the others count from the moment they first saw the
record as it is and wait `lease_duration`. The former is the earlier start and the shorter time,
so the holder has always stopped first, even when its API server hangs.

Invariant: at no moment are two terms of one Lease valid, as long as clocks run alike to within
lease_duration / renew_deadline; and each term has an epoch above those of all terms before it.
What a request does that was sent in time and delivered late is for the epoch to fence.
"""

# A timeout is what a call promises, so it is a parameter and no scope of the caller.
# ruff: noqa: ASYNC109

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Protocol

import structlog

from kube.api.bodies import decode
from kube.api.errors import Conflict, KubeError, NotFound
from kube.api.lease import ANSWERED, Lease, Observation, free_at, observe, succeeds_cleanly
from kube.api.resources import Resource

log = structlog.get_logger(__name__)

LEASES = Resource("coordination.k8s.io", "v1", "leases")
NONE: Mapping[str, str] = MappingProxyType({})


def suspend_aware() -> float:
    """Return seconds that also pass while the machine sleeps.

    CLOCK_MONOTONIC stands still in a suspended machine, the other replicas' clocks don't.
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; client-go's defaults, which operators know."""

    lease_duration: float = 15.0
    """How long the others leave an unchanged record alone; whole seconds in the Lease."""
    renew_deadline: float = 10.0
    """How long a term is valid after the start of its last successful write."""
    retry_period: float = 2.0
    """Between two tries, and the timeout of each call."""

    def __post_init__(self) -> None:
        assert self.lease_duration > self.renew_deadline > self.retry_period > 0


class Term:
    """One uninterrupted time of leadership. Ask `valid` right before each write is sent."""

    __slots__ = ("_clock", "_deadline", "answered", "clean", "epoch", "identity")

    def __init__(
        self,
        epoch: int,
        identity: str,
        deadline: float,
        clock: Callable[[], float],
        *,
        clean: bool = False,
    ) -> None:
        self.epoch = epoch
        self.identity = identity
        self.clean = clean
        """Whether no request of an earlier leader can be under way any more."""
        self.answered = False
        """Set by the leader at its end: all requests of this term and of those before are over."""
        self._deadline = deadline
        self._clock = clock

    def remaining(self) -> float:
        """Return the seconds for which this term is certainly ours; 0 when it is over."""
        return max(0.0, self._deadline - self._clock())

    def valid(self) -> bool:
        """Return whether we lead at this moment, also after the process was stopped."""
        return self.remaining() > 0

    def prolong(self, deadline: float) -> None:
        """Move the end; only the election may know that it can. What lapsed stays over."""
        if self.valid():
            self._deadline = deadline

    def end(self) -> None:
        """End it now."""
        self._deadline = -math.inf


class LeaseApi(Protocol):
    """What the election needs of a `Client`."""

    async def get(self, path: str, *, timeout: float | None = ...) -> bytes: ...  # noqa: D102
    async def create(  # noqa: D102
        self, path: str, obj: object, *, timeout: float | None = ...
    ) -> bytes: ...
    async def merge_patch(  # noqa: D102
        self, path: str, changes: object, *, timeout: float | None = ...
    ) -> bytes: ...


class _LostError(Exception):
    """The record says that another process holds the Lease, or none."""


class Election:
    """Contend for one Lease, lead while it is ours, and contend again.

    `identity` must belong to this process alone (a pod's name and something random): a Lease
    that bears it is taken without waiting. `floor` gives the highest epoch the caller knows to
    be written anywhere, so that a Lease deleted by hand doesn't start the count again.
    """

    def __init__(
        self,
        api: LeaseApi,
        namespace: str,
        name: str,
        identity: str,
        *,
        timing: Timing = Timing(),
        floor: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = suspend_aware,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._api = api
        self._collection = LEASES.path(namespace)
        self._path = LEASES.path(namespace, name)
        self._name = name
        self._identity = identity
        self._timing = timing
        self._floor = floor
        self._clock = clock
        self._chance = chance
        self._seen: Observation | None = None
        self._term: Term | None = None
        self._log = log.bind(lease=f"{namespace}/{name}", identity=identity)

    @property
    def term(self) -> Term | None:
        """The term that is ours now, if any."""
        return self._term if self._term is not None and self._term.valid() else None

    async def run(self, lead: Callable[[Term], Awaitable[None]]) -> None:
        """Run `lead` in each term of ours, until cancelled or `lead` raises.

        `lead` is cancelled when its term ends, and joined before the Lease is given back.
        One that returns gives its term up.
        """
        while True:
            term = await self._acquire()
            try:
                await self._serve(term, lead)
            finally:
                self._term = None
            await asyncio.sleep(self._pause())

    # --- becoming the leader ----------------------------------------------------------------

    async def _acquire(self) -> Term:
        while True:
            try:
                term = await self._take()
            except KubeError as error:
                self._log.info("lease not taken", error=str(error))
            else:
                if term is not None:
                    self._term = term
                    self._log.info("leading", epoch=term.epoch)
                    return term
            await asyncio.sleep(self._next_try())

    async def _take(self) -> Term | None:
        exists = await self._read(self._timing.retry_period)
        start = self._clock()
        # Also when the Lease is gone: its deletion did not stop the holder.
        if start < free_at(self._seen, self._identity, self._timing.lease_duration):
            return None
        before = self._seen.spec.lease_transitions if self._seen is not None else None
        epoch = max(before or 0, self._floor()) + 1
        clean = succeeds_cleanly(self._seen, epoch)
        spec = {**self._held(), "acquireTime": _now(), "leaseTransitions": epoch}
        if exists:
            await self._write(spec, self._timing.retry_period)
        else:
            await self._create(spec, self._timing.retry_period)
        deadline = start + self._timing.renew_deadline
        return Term(epoch, self._identity, deadline, self._clock, clean=clean)

    def _next_try(self) -> float:
        """Return the wait before the next try: to the moment the Lease is free, if that is near."""
        left = free_at(self._seen, self._identity, self._timing.lease_duration) - self._clock()
        pause = self._pause()
        return left + 0.1 * pause if 0 < left < pause else pause

    def _pause(self) -> float:
        return self._timing.retry_period * (1 + 0.5 * self._chance())

    # --- being the leader -------------------------------------------------------------------

    async def _serve(self, term: Term, lead: Callable[[Term], Awaitable[None]]) -> None:
        work = asyncio.ensure_future(lead(term))
        keep = asyncio.create_task(self._keep(term))
        try:
            await asyncio.wait({work, keep}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Joined while the Lease is still renewed: what it does to end in order is in its term.
            await _stop(work)
            await _stop(keep)
            term.end()
            self._log.info("leading no longer", epoch=term.epoch)
            await self._release(term)
        _raise_what_failed(work, keep)

    async def _keep(self, term: Term) -> None:
        """Renew until the term is over; returns at its deadline at the latest."""
        while term.valid():
            pause = self._timing.retry_period * (0.9 + 0.1 * self._chance())
            await asyncio.sleep(min(pause, term.remaining()))
            try:
                await self._renew(term)
            except _LostError:
                term.end()
            except KubeError as error:
                self._log.warning("lease not renewed", error=str(error), left=term.remaining())

    async def _renew(self, term: Term) -> None:
        left = term.remaining()
        if left <= 0:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                start = await self._write_as_holder(term, self._held())
                term.prolong(start + self._timing.renew_deadline)

    async def _release(self, term: Term) -> None:
        """Let the next one in at once, if the Lease is still ours; else it is no harm."""
        emptied = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _now()}
        answered = {ANSWERED: str(term.epoch)} if term.answered else {}
        try:
            await self._write_as_holder(term, emptied, answered)
        except (KubeError, _LostError) as error:
            self._log.info("lease not released", error=str(error))

    # --- the record -------------------------------------------------------------------------

    async def _write_as_holder(
        self, term: Term, spec: dict[str, Any], annotations: Mapping[str, str] = NONE
    ) -> float:
        """Write while the record is this term's; return the start of the write that succeeded."""
        timeout = self._timing.retry_period
        # The last known record may be of another holder; its version would make this write pass.
        if not self._is_held_in(term):
            raise _LostError
        start = self._clock()
        try:
            await self._write(spec, timeout, annotations)
        except (Conflict, NotFound):
            # Perhaps only an answer to ourselves was lost, and the record is newer than we know.
            if not await self._read(timeout) or not self._is_held_in(term):
                raise _LostError from None
            start = self._clock()
            await self._write(spec, timeout, annotations)
        return start

    def _is_held_in(self, term: Term) -> bool:
        assert self._seen is not None
        spec = self._seen.spec
        return (spec.holder_identity, spec.lease_transitions) == (term.identity, term.epoch)

    async def _read(self, timeout: float) -> bool:
        try:
            answer = await self._api.get(self._path, timeout=timeout)
        except NotFound:
            return False
        self._note(answer)
        return True

    async def _write(
        self, spec: dict[str, Any], timeout: float, annotations: Mapping[str, str] = NONE
    ) -> None:
        assert self._seen is not None
        metadata: dict[str, Any] = {"resourceVersion": self._seen.version}
        metadata |= {"annotations": dict(annotations)} if annotations else {}
        changes = {"metadata": metadata, "spec": spec}
        self._note(await self._api.merge_patch(self._path, changes, timeout=timeout))

    async def _create(self, spec: dict[str, Any], timeout: float) -> None:
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name},
            "spec": spec,
        }
        self._note(await self._api.create(self._collection, lease, timeout=timeout))

    def _note(self, answer: bytes) -> None:
        # Read after the answer: the age of a record must never be made greater than it is.
        self._seen = observe(self._seen, decode(answer, Lease), self._clock())

    def _held(self) -> dict[str, Any]:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._timing.lease_duration),
            "renewTime": _now(),
        }


def _now() -> str:
    """Return the time as a MicroTime; for people only, no decision depends on it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


async def _stop(task: "asyncio.Future[Any]") -> None:
    task.cancel()
    await asyncio.wait({task})


def _raise_what_failed(*tasks: "asyncio.Future[Any]") -> None:
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

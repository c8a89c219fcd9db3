"""A cluster in which API servers and replicas may know what was, for a while.

The Secret and the configurations have versions, as on the real one: a write that names another
version is refused.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from certs import rolling
from certs.chain import Pair, anchor, expires_at, service_names, starts_at
from certs.held import OWNER, OWNER_LABEL, Held, data_of, notes_of, read_held
from certs.plan import Plan, Step
from certs.rolling import Bundle, Wanted

T = TypeVar("T")

START = datetime(2026, 1, 1, tzinfo=UTC)
WANTED = Wanted("muster-webhook-tls-ca", service_names("muster-webhook", "muster-system"))

HEARD = timedelta(seconds=30)
"""What an API server may lag behind."""
MOUNTED = timedelta(minutes=3)
"""What a replica may lag behind: two minutes of the kubelet, and one to spare."""


def stored(held: Held) -> Held:
    """What comes back of what is written."""
    data = {name: text for name, text in data_of(held).items() if text is not None}
    notes = {name: text for name, text in notes_of(held).items() if text is not None}
    return read_held(data, {OWNER_LABEL: OWNER}, notes)


@dataclass
class Seen:
    """What a process read: bundles first, then the Secret."""

    bundles: tuple[Bundle, ...]
    versions: tuple[int, ...]
    held: Held | None
    version: int


@dataclass
class World:
    """The cluster."""

    bundles: list[Bundle] = field(default_factory=lambda: [(), ()])
    versions: list[int] = field(default_factory=lambda: [0, 0])
    held: Held | None = None
    version: int = 0
    now: datetime = START
    steps: list[Step] = field(default_factory=list)
    trusted: list[tuple[datetime, tuple[Bundle, ...]]] = field(default_factory=list)
    served: list[tuple[datetime, Pair]] = field(default_factory=list)

    # ---- a process

    def see(self) -> Seen:
        return Seen(tuple(self.bundles), tuple(self.versions), self.held, self.version)

    def plan(self, seen: Seen) -> Plan:
        return rolling.next_step(seen.held, seen.bundles, WANTED, self.now)

    def act(self, seen: Seen, *, configurations: int | None = None) -> bool:
        """Do what is due by what was seen, once; False where there is nothing, or it is refused.

        `configurations` has it killed after so many configurations.
        """
        plan = self.plan(seen)
        if plan.step in (Step.WAIT, Step.BLOCKED):
            return False
        if plan.step is Step.INJECT:
            return self._inject(seen, configurations)
        if seen.version != self.version:
            return False
        made = rolling.changed(plan.step, seen.held, seen.bundles, WANTED, self.now)
        self.steps.append(plan.step)
        self.put(stored(made))
        return True

    def _inject(self, seen: Seen, most: int | None) -> bool:
        assert seen.held is not None
        ours = WANTED.authority if seen.held.ours else None
        for at, bundle in list(enumerate(seen.bundles))[:most]:
            wanted = rolling.trusting(bundle, seen.held, ours)
            if {*wanted} != {*bundle}:
                if seen.versions[at] != self.versions[at]:
                    return False
                self.trust(at, wanted)
        self.steps.append(Step.INJECT)
        return True

    def put(self, held: Held) -> None:
        """Write the Secret."""
        self.held, self.version = held, self.version + 1
        if held.served is not None:
            self.served.append((self.now, held.served))

    def trust(self, at: int, bundle: Bundle) -> None:
        """Write a configuration."""
        self.bundles[at], self.versions[at] = bundle, self.versions[at] + 1
        self.trusted.append((self.now, tuple(self.bundles)))

    def settle(self) -> Plan:
        """Act until there is nothing to be done now."""
        for _ in range(20):
            seen = self.see()
            if not self.act(seen):
                return self.plan(seen)
        raise AssertionError(self.steps)

    def until(self, moment: datetime) -> None:
        """Let time pass, with a process that acts whenever something is due."""
        while True:
            plan = self.settle()
            self.expect_no_call_fails()
            assert plan.until is not None
            if plan.until > moment:
                break
            self.now = max(plan.until, self.now)
        self.now = moment

    # ---- the calls

    def forget(self) -> None:
        """Let everything have heard of what is there now."""
        del self.trusted[:-1], self.served[:-1]

    def expect_no_call_fails(self) -> None:
        """Any API server, as far behind as it may be, accepts any replica that is so, too."""
        for pair in _visible(self.served, self.now, MOUNTED):
            begins, ends = valid(pair.certificate)
            assert begins <= self.now < ends
            for bundles in _visible(self.trusted, self.now, HEARD):
                assert all(is_trusted(pair.certificate, each) for each in bundles)


@functools.cache
def valid(certificate: bytes) -> tuple[datetime, datetime]:
    return starts_at(certificate), expires_at(certificate)


@functools.cache
def is_trusted(certificate: bytes, bundle: Bundle) -> bool:
    return anchor(certificate, bundle) is not None


def _visible(history: list[tuple[datetime, T]], now: datetime, lag: timedelta) -> Iterator[T]:
    """What may be seen by whatever is so far behind."""
    ends = [*(since for since, _ in history[1:]), now + lag]
    return (what for (_, what), end in zip(history, ends, strict=True) if end > now - lag)


def installed() -> World:
    """One in which the first certificate has been served for a while."""
    world = World()
    world.settle()
    world.now += timedelta(hours=2)
    return world

"""Two terms are never valid at once, whatever clocks and answers do."""

# The fake has the signatures of the client, timeouts included.
# ruff: noqa: ASYNC109, ARG002

import asyncio
import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.api.errors import Conflict, KubeError, NotFound, ServerError, Timeout, Unreachable
from kube.api.leader_election import Election, Term, Timing
from tests.examples import examples
from tests.kube.virtual_time import run_virtually

# --- all that can happen, in virtual time ---------------------------------------------------


@dataclass(slots=True)
class Chaos:
    """An API server behind a network that delays, loses, repeats nothing and forgets nothing.

    A request goes on when its sender has given up: it may be carried out at any later moment.
    """

    dice: random.Random
    lease: dict[str, Any] | None = None
    version: int = 0
    trouble: bool = True
    going: set["asyncio.Task[Any]"] = field(default_factory=set)

    def view(self) -> bytes:
        if self.lease is None:
            raise NotFound(404)
        return json.dumps(self.lease).encode()

    def write(self, spec: dict[str, Any], expected: str | None) -> bytes:
        held = self.lease["metadata"]["resourceVersion"] if self.lease is not None else None
        if expected != held:
            raise Conflict(409) if held else NotFound(404)
        self.version += 1
        before = self.lease["spec"] if self.lease is not None else {}
        metadata = {"uid": "u", "resourceVersion": str(self.version)}
        self.lease = {"metadata": metadata, "spec": {**before, **spec}}
        return json.dumps(self.lease).encode()


@dataclass(slots=True)
class Line:
    """One replica's way to the API server; it may be cut for long."""

    api: Chaos
    cut_until: float = 0.0

    async def get(self, path: str, *, timeout: float | None = None) -> bytes:
        return await self._call(self.api.view, timeout)

    async def create(self, path: str, obj: Any, *, timeout: float | None = None) -> bytes:
        return await self._call(lambda: self.api.write(obj["spec"], None), timeout)

    async def merge_patch(self, path: str, changes: Any, *, timeout: float | None = None) -> bytes:
        expected = changes["metadata"]["resourceVersion"]
        return await self._call(lambda: self.api.write(changes["spec"], expected), timeout)

    async def _call(self, work: Any, timeout: float | None) -> bytes:
        job = asyncio.create_task(self._carry(work))
        self.api.going.add(job)
        job.add_done_callback(self.api.going.discard)
        try:
            async with asyncio.timeout(timeout):
                answer = await asyncio.shield(job)
                await asyncio.sleep(self._latency())
        except TimeoutError:
            raise Timeout("late") from None
        if isinstance(answer, KubeError):
            raise answer
        if self.api.trouble and self.api.dice.random() < 0.1:
            raise Unreachable("reset", sent=True)
        return answer

    async def _carry(self, work: Any) -> bytes | KubeError:
        await asyncio.sleep(self._latency() + self._cut())
        if self.api.trouble and self.api.dice.random() < 0.1:
            return ServerError(500)
        try:
            done: bytes = work()
        except KubeError as error:
            return error
        return done

    def _latency(self) -> float:
        dice = self.api.dice
        slow = self.api.trouble and dice.random() < 0.15
        return dice.uniform(0, 8.0 if slow else 0.05)

    def _cut(self) -> float:
        now = asyncio.get_running_loop().time()
        if self.api.trouble and now >= self.cut_until and self.api.dice.random() < 0.02:
            self.cut_until = now + self.api.dice.uniform(1, 40)
        return max(0.0, self.cut_until - now)


def skewed(dice: random.Random) -> Any:
    """Return a clock of its own: anywhere, and up to a tenth too fast or too slow."""
    loop = asyncio.get_running_loop()
    rate, offset = dice.uniform(0.9, 1.1), dice.uniform(0, 1e6)
    return lambda: offset + rate * loop.time()


async def simulate(seed: int, replicas: int, trouble_for: float) -> None:
    dice = random.Random(seed)
    api = Chaos(dice)
    terms: list[Term] = []

    async def lead(term: Term) -> None:
        assert not any(other.valid() for other in terms), "two terms at once"
        assert all(other.epoch < term.epoch for other in terms), "epochs only grow"
        terms.append(term)
        # Sometimes the work takes its time to end, sometimes it gives up by itself.
        try:
            await asyncio.sleep(dice.uniform(1, 60))
        finally:
            await asyncio.sleep(dice.uniform(0, 6))

    contenders = [
        asyncio.create_task(
            Election(
                Line(api), "ns", "muster", f"r{n}", clock=skewed(dice), chance=dice.random
            ).run(lead)
        )
        for n in range(replicas)
    ]

    async def watch(until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            assert sum(term.valid() for term in terms) <= 1, "two terms at once"
            for task in contenders:
                if task.done():
                    task.result()
            await asyncio.sleep(0.2)

    await watch(trouble_for)
    api.trouble = False
    await watch(trouble_for + 60)
    led = len(terms)
    await watch(trouble_for + 150)
    assert len(terms) > led, "when the trouble is over, they lead again"
    for task in contenders:
        task.cancel()
    await asyncio.wait(contenders)
    await asyncio.gather(*api.going, return_exceptions=True)


@pytest.mark.parametrize("retry_period", [2.0, 7.0, 9.0])
def test_the_work_is_stopped_at_the_deadline_and_not_a_call_later(retry_period: float) -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        way = Line(Chaos(random.Random(1), trouble=False))
        times: list[float] = []

        async def lead(term: Term) -> None:
            times.append(loop.time())
            way.cut_until = 1000.0
            try:
                await asyncio.sleep(999)
            finally:
                times.append(loop.time())

        timing = Timing(15.0, 10.0, retry_period)
        election = Election(way, "ns", "muster", "one", timing=timing, clock=loop.time)
        task = asyncio.create_task(election.run(lead))
        await asyncio.sleep(100)
        task.cancel()
        await asyncio.wait({task})
        began, ended = times
        assert ended - began <= 10.0

    run_virtually(program())


@examples(40)
@given(st.integers(0, 2**32), st.integers(2, 3))
def test_two_terms_are_never_valid_at_once(seed: int, replicas: int) -> None:
    run_virtually(simulate(seed, replicas, trouble_for=200.0))

"""Answers kube-scheduler's questions over TLS, within their deadline.

/filter, /prioritize and /preempt answer kube-scheduler alone, by the name in its certificate. What
is no question gets a 4xx with a constant text. While the watches are not synced, or have been
silent too long, the answer is 503: never "all nodes are fine". Whatever is answered is worked out
without a pause, so that the snapshot it is drawn from is one moment.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import structlog
from aiohttp import web

from extender.filter import Filtered, filter_nodes
from extender.memory.in_flight import Passing
from extender.metrics import Metrics
from extender.preempt import Rules, kept_nodes
from extender.prioritize import scores
from extender.score_prefetch import Ahead
from extender.settings import Settings
from extender.snapshot import Ledger, Seen
from extender.tls import caller_name
from extender.unscheduled_pods import Refusals
from extender.wire.node_lists import NodeList
from extender.wire.protocol import (
    BadQuestion,
    Body,
    Piece,
    Question,
    filter_answer,
    preemption_answer,
    priorities_answer,
    read_preemption,
    read_question,
)
from extender.wire.streamed_request import Reading, reading
from runtime.http_server import BadBody, read_body
from runtime.slicing import ITERATIONS, SLICE

log = structlog.get_logger(__name__)

_JSON = {"Content-Type": "application/json"}

LARGE = 1 << 20
"""Bodies from this size on hold whole nodes, and are read in slices."""

CHUNK = 1 << 18
"""What is written of a long answer in one go."""

Parts = Sequence[bytes | Piece]
"""An answer, of one part but where nodes are given back whole."""

_LISTS_KEPT = 4
"""A scheduler asks about one pod at a time, so this is enough for a few schedulers."""


class Knowledge(Protocol):
    """What is known, and whether it may be used."""

    @property
    def ledger(self) -> Ledger:
        """What the watches told."""

    def trusted(self) -> bool:
        """Whether all watches are synced and have been heard of lately."""


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The call is not answered; status and a text that holds nothing of the input."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Extender:
    """Answers kube-scheduler."""

    def __init__(
        self,
        settings: Settings,
        knowledge: Knowledge,
        passing: Passing,
        refusals: Refusals,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._knowledge = knowledge
        self._passing = passing
        self._refusals = refusals
        self._metrics = metrics
        self._clock = clock
        self._rules = Rules(protect_minimum=settings.protect_minimum)
        self._lists: deque[NodeList] = deque(maxlen=_LISTS_KEPT)
        self._ahead = Ahead(self._scored)
        self._verbs: Mapping[str, Callable[[Body], Parts]] = {
            "filter": self.filter,
            "prioritize": self.prioritize,
            "preempt": self.preempt,
        }
        self._judges: Mapping[str, Callable[[Question], Parts]] = {
            "filter": self.left_by,
            "prioritize": self.scored_of,
        }

    def application(self) -> web.Application:
        """Return what listens for kube-scheduler."""
        application = web.Application()
        for verb in self._verbs:
            application.router.add_post(f"/{verb}", self._handler(verb))
        return application

    def _handler(self, verb: str) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            with self._metrics.seconds[verb].time():
                return await self._answered(verb, request)

        return handle

    async def _answered(self, verb: str, request: web.Request) -> web.StreamResponse:
        calls, deadline = self._metrics.calls, self._clock() + self._settings.call_seconds
        try:
            body = await self._body(request)
            self._expect_before(deadline)
            answer = await self._worked_out(verb, body, deadline)
            self._expect_before(deadline)
        except Refused as error:
            calls[verb, "unready" if error.status == 503 else "refused"].inc()
            return web.Response(status=error.status, text=f"{error}\n")
        except BadQuestion as error:
            calls[verb, "refused"].inc()
            return web.Response(status=400, text=f"{error}\n")
        except Exception:
            log.exception("call failed", verb=verb)
            calls[verb, "failed"].inc()
            return web.Response(status=500, text="internal error, see the extender's log\n")
        calls[verb, "answered"].inc()
        asyncio.get_running_loop().call_soon(self._ahead.work)  # once this answer is on its way
        if len(answer) == 1:
            return web.Response(body=answer[0], headers=_JSON)
        return await self._sent(request, answer)

    async def _worked_out(self, verb: str, body: Body, deadline: float) -> Parts:
        if len(body) < LARGE or verb not in self._judges:
            return self._verbs[verb](body)
        question = await _in_slices(reading(body, self._lists))
        self._expect_before(deadline)
        self._expect_trust()
        return self._judges[verb](question)

    async def _sent(self, request: web.Request, answer: Parts) -> web.StreamResponse:
        """Send a long answer part by part; who does not take it in time is hung up on."""
        length = sum(map(len, answer))
        response = web.StreamResponse(headers=_JSON | {"Content-Length": str(length)})
        try:
            async with asyncio.timeout(self._settings.call_seconds):
                await response.prepare(request)
                for part in _gathered(answer):
                    await response.write(part)
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        return response

    def _expect_before(self, deadline: float) -> None:
        """Refuse what is late: the scheduler may have given the call up and asked somebody else."""
        if self._clock() > deadline:
            raise Refused(503, "not answered in time")

    def _expect_trust(self) -> None:
        if not self._knowledge.trusted():
            raise Refused(503, "the watches are not up to date")

    async def _body(self, request: web.Request) -> Body:
        """Return the body of a call that may be answered."""
        certificate = request.get_extra_info("peercert")
        if caller_name(certificate) != self._settings.client_name:
            raise Refused(403, "not the scheduler's certificate")
        self._expect_trust()
        limit, seconds = self._settings.body_limit_bytes, self._settings.call_seconds
        try:
            body = await read_body(request, limit, seconds)
        except BadBody as error:
            raise Refused(error.status, str(error)) from None
        self._expect_trust()
        return body

    # ---- the verbs

    def filter(self, body: Body) -> Parts:
        """Answer which nodes the pod may have, and remember which it got."""
        return self.left_by(read_question(body, self._lists))

    def left_by(self, question: Question) -> Parts:
        """The same, of a question that was read."""
        now, ledger = self._clock(), self._knowledge.ledger
        asked = ledger.asked(question.pod)
        recall = self._passing.recall(asked.pod.uid, now)
        found = filter_nodes(asked, question.listed, ledger.snapshot(), recall)
        self._passing.answered(asked.pod.uid, found.remember, now)
        if len(found.left):
            self._refusals.forget(asked.pod.uid)
        else:
            self._refusals.note(asked)
            self._count(found)
        self._lists.append(found.left)
        self._ahead.expect(asked, found.left)
        return filter_answer(question, found.left, found.failed, found.unresolvable)

    def _count(self, found: Filtered) -> None:
        if found.unresolvable:
            self._metrics.reserved_for_gangs.inc()

    def prioritize(self, body: Body) -> Parts:
        """Answer how good the nodes are for the pod."""
        return self.scored_of(read_question(body, self._lists))

    def scored_of(self, question: Question) -> Parts:
        """The same, of a question that was read."""
        ready = self._ahead.answer(question.pod.metadata.uid, question.listed)
        if ready is not None:
            return (ready,)
        return (self._scored(self._knowledge.ledger.asked(question.pod), question.listed),)

    def _scored(self, asked: Seen, nodes: NodeList) -> bytes:
        found = scores(asked.pod.used, nodes, self._knowledge.ledger.snapshot())
        return priorities_answer(nodes, found)

    def preempt(self, body: Body) -> Parts:
        """Answer on which nodes evicting the victims is worth it."""
        preemption = read_preemption(body)
        victims = {name: each.uids for name, each in preemption.victims.items()}
        ledger = self._knowledge.ledger
        snapshot, asked = ledger.snapshot(), ledger.asked(preemption.pod)
        self._passing.settled(asked.pod.uid)  # its attempt has failed, or nobody would be evicted
        kept = kept_nodes(asked, victims, snapshot, self._rules)
        return (preemption_answer(preemption, kept),)


async def _in_slices(steps: Reading) -> Question:
    """Take the steps, with pauses in which others are answered."""
    try:
        while True:
            _take_for_a_slice(steps)
            for _ in range(ITERATIONS):
                await asyncio.sleep(0)
    except StopIteration as done:
        question: Question = done.value
        return question


def _take_for_a_slice(steps: Reading) -> None:
    """Take at least one step; raises StopIteration after the last."""
    ends = time.perf_counter() + SLICE
    next(steps)
    while time.perf_counter() < ends:
        next(steps)


def _gathered(parts: Parts) -> Iterator[bytes]:
    """The same in parts of about CHUNK."""
    gathered = bytearray()
    for part in parts:
        gathered += part
        if len(gathered) >= CHUNK:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered)

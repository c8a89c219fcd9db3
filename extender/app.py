"""Answers kube-scheduler's questions over TLS, within their deadline.

/filter, /prioritize and /preempt answer kube-scheduler alone, by the name in its certificate. What
is no question gets a 4xx with a constant text. While the watches are not synced, or have been
silent too long, the answer is 503: never "all nodes are fine". An answer is computed without an
await, so that the snapshot it comes from is one moment.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import structlog
from aiohttp import web

from extender.filter import Filtered, filter_nodes
from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.metrics import Metrics
from extender.preempt import Rules, kept_nodes
from extender.prioritize import scores
from extender.score_prefetch import ScorePrefetch
from extender.settings import Settings
from extender.snapshot import WatchedPod
from extender.tls import LastCaller, caller_name
from extender.unscheduled_pods import UnscheduledPods
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
from extender.wire.streamed_request import reading
from runtime.http_server import BadBody, read_body
from runtime.slicing import result_in_slices

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
    """The ledger, and whether it may be used."""

    @property
    def ledger(self) -> Ledger:
        """What the watches delivered."""

    def trusted(self) -> bool:
        """Whether all watches are synced and none is silent for too long."""


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
        in_flight_pods: InFlightPods,
        unscheduled: UnscheduledPods,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._knowledge = knowledge
        self._in_flight_pods = in_flight_pods
        self._unscheduled = unscheduled
        self._metrics = metrics
        self._clock = clock
        self._caller = LastCaller(clock)
        metrics.caller_expires.set_function(self._caller.expires)
        self._rules = Rules(protect_minimum=settings.protect_minimum)
        self._lists: deque[NodeList] = deque(maxlen=_LISTS_KEPT)
        self._prefetch = ScorePrefetch(self._scored)
        self._verbs: Mapping[str, Callable[[Body], Parts]] = {
            "filter": self.filter,
            "prioritize": self.prioritize,
            "preempt": self.preempt,
        }
        self._judges: Mapping[str, Callable[[Question], Parts]] = {
            "filter": self.filter_question,
            "prioritize": self.prioritize_question,
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
        asyncio.get_running_loop().call_soon(self._prefetch.work)  # once this answer is on its way
        if len(answer) == 1:
            return web.Response(body=answer[0], headers=_JSON)
        return await self._sent(request, answer)

    async def _worked_out(self, verb: str, body: Body, deadline: float) -> Parts:
        if len(body) < LARGE or verb not in self._judges:
            return self._verbs[verb](body)
        question = await result_in_slices(reading(body, self._lists))
        self._expect_before(deadline)
        self._expect_trust()
        return self._judges[verb](question)

    async def _sent(self, request: web.Request, answer: Parts) -> web.StreamResponse:
        """Send a long answer part by part; a caller that reads too slowly is disconnected."""
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
        """Refuse what is late: the scheduler may have given up and asked another replica."""
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
        self._caller.called(certificate)
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
        """Answer which nodes the pod may have, and remember the pod as passed or unscheduled."""
        return self.filter_question(read_question(body, self._lists))

    def filter_question(self, question: Question) -> Parts:
        """Answer `filter` for a question that was read already."""
        now, ledger = self._clock(), self._knowledge.ledger
        asked = ledger.asked(question.pod)
        in_flight = self._in_flight_pods.view_for(asked.pod.uid, now)
        found = filter_nodes(asked, question.listed, ledger.snapshot(), in_flight)
        self._in_flight_pods.answered(asked.pod.uid, found.remember, now)
        if len(found.left):
            self._unscheduled.forget(asked.pod.uid)
        else:
            self._unscheduled.note(asked)
            self._count(found)
        self._lists.append(found.left)
        self._prefetch.expect(asked, found.left)
        return filter_answer(question, found.left, found.failed, found.unresolvable)

    def _count(self, found: Filtered) -> None:
        if found.unresolvable:
            self._metrics.reserved_for_gangs.inc()

    def prioritize(self, body: Body) -> Parts:
        """Answer how good the nodes are for the pod."""
        return self.prioritize_question(read_question(body, self._lists))

    def prioritize_question(self, question: Question) -> Parts:
        """Answer `prioritize` for a question that was read already."""
        ready = self._prefetch.answer(question.pod.metadata.uid, question.listed)
        if ready is not None:
            return (ready,)
        return (self._scored(self._knowledge.ledger.asked(question.pod), question.listed),)

    def _scored(self, asked: WatchedPod, nodes: NodeList) -> bytes:
        found = scores(asked.pod.used, nodes, self._knowledge.ledger.snapshot())
        return priorities_answer(nodes, found)

    def preempt(self, body: Body) -> Parts:
        """Answer on which nodes evicting the victims makes room."""
        preemption = read_preemption(body)
        victims = {name: each.uids for name, each in preemption.victims.items()}
        ledger = self._knowledge.ledger
        snapshot, asked = ledger.snapshot(), ledger.asked(preemption.pod)
        # A pod that preempts has failed its attempt, so it is in flight no more.
        self._in_flight_pods.settled(asked.pod.uid)
        kept = kept_nodes(asked, victims, snapshot, self._rules)
        return (preemption_answer(preemption, kept),)


def _gathered(parts: Parts) -> Iterator[bytes]:
    """Join short parts of an answer into parts of about CHUNK."""
    gathered = bytearray()
    for part in parts:
        gathered += part
        if len(gathered) >= CHUNK:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered)

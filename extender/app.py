"""How does a question come in over TLS, and what goes back, whatever comes?

/filter, /prioritize and /preempt answer kube-scheduler alone, by the name in its certificate. What
is no question gets a 4xx with a constant text. While the watches are not synced, or have been
silent too long, the answer is 503: never "all nodes are fine". Whatever is answered is worked out
without a pause, so that the snapshot it is drawn from is one moment.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any, Protocol

import structlog
from aiohttp import web

from extender.ahead import Ahead
from extender.filter import Filtered, filter_nodes
from extender.lists import NodeList
from extender.metrics import Metrics
from extender.passing import Passing
from extender.preempt import Rules, kept_nodes
from extender.prioritize import scores
from extender.refusals import Refusals
from extender.settings import Settings
from extender.snapshot import Ledger, see
from extender.tls import caller_name
from extender.wire import (
    BadQuestion,
    filter_answer,
    preemption_answer,
    priorities_answer,
    read_preemption,
    read_question,
)
from kube.codec import InvalidObject, pod_shape
from kube.objects import Pod

log = structlog.get_logger(__name__)

_JSON = {"Content-Type": "application/json"}

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
        self._verbs: Mapping[str, Callable[[bytes], bytes]] = {
            "filter": self.filter,
            "prioritize": self.prioritize,
            "preempt": self.preempt,
        }

    def application(self) -> web.Application:
        """Return what listens for kube-scheduler."""
        application = web.Application(client_max_size=self._settings.body_limit_bytes)
        for verb in self._verbs:
            application.router.add_post(f"/{verb}", self._handler(verb))
        return application

    def _handler(self, verb: str) -> Callable[[web.Request], Any]:
        work = self._verbs[verb]

        async def handle(request: web.Request) -> web.Response:
            with self._metrics.seconds[verb].time():
                return await self._answered(verb, work, request)

        return handle

    async def _answered(
        self, verb: str, work: Callable[[bytes], bytes], request: web.Request
    ) -> web.Response:
        calls, deadline = self._metrics.calls, self._clock() + self._settings.call_seconds
        try:
            body = await self._body(request)
            self._expect_before(deadline)
            answer = work(body)
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
        return web.Response(body=answer, headers=_JSON)

    def _expect_before(self, deadline: float) -> None:
        """Refuse what is late: the scheduler may have given the call up and asked somebody else."""
        if self._clock() > deadline:
            raise Refused(503, "not answered in time")

    async def _body(self, request: web.Request) -> bytes:
        """Return the body of a call that may be answered."""
        certificate = request.get_extra_info("peercert")
        if caller_name(certificate) != self._settings.client_name:
            raise Refused(403, "not the scheduler's certificate")
        if not self._knowledge.trusted():
            raise Refused(503, "the watches are not up to date")
        if (request.content_length or 0) > self._settings.body_limit_bytes:
            raise Refused(413, "the body is too large")
        body = await self._read(request)
        if not self._knowledge.trusted():
            raise Refused(503, "the watches are not up to date")
        return body

    async def _read(self, request: web.Request) -> bytes:
        try:
            async with asyncio.timeout(self._settings.call_seconds):
                return await request.read()
        except TimeoutError:
            raise Refused(408, "the body did not come in time") from None
        except web.HTTPRequestEntityTooLarge:
            raise Refused(413, "the body is too large") from None
        except web.RequestPayloadError:
            raise Refused(400, "the body broke off") from None

    # ---- the verbs

    def filter(self, body: bytes) -> bytes:
        """Answer which nodes the pod may have, and remember which it got."""
        question = read_question(body, self._lists)
        now, asked = self._clock(), see(question.pod)
        recall = self._passing.recall(asked.pod.uid, now)
        found = filter_nodes(asked, question.listed, self._knowledge.ledger.snapshot(), recall)
        self._passing.answered(asked.pod.uid, found.remember, now)
        if found.passed:
            self._refusals.forget(asked.pod.uid)
        else:
            self._refusals.note(asked)
            self._count(found)
        self._lists.append(found.left)
        self._ahead.expect(question.pod, found.left)
        return filter_answer(question, found.left, found.failed, found.unresolvable)

    def _count(self, found: Filtered) -> None:
        if found.unresolvable:
            self._metrics.reserved_for_gangs.inc()

    def prioritize(self, body: bytes) -> bytes:
        """Answer how good the nodes are for the pod."""
        question = read_question(body, self._lists)
        return self._ahead.answer(question.pod, question.listed)

    def _scored(self, pod: Pod, nodes: NodeList) -> bytes:
        try:
            shape = pod_shape(pod)
        except InvalidObject:
            return priorities_answer(nodes, repeat(0, len(nodes.names)))
        return priorities_answer(nodes, scores(shape, nodes, self._knowledge.ledger.snapshot()))

    def preempt(self, body: bytes) -> bytes:
        """Answer on which nodes evicting the victims is worth it."""
        preemption = read_preemption(body)
        victims = {name: each.uids for name, each in preemption.victims.items()}
        snapshot, asked = self._knowledge.ledger.snapshot(), see(preemption.pod)
        self._passing.settled(asked.pod.uid)  # its attempt has failed, or nobody would be evicted
        kept = kept_nodes(asked, victims, snapshot, self._rules)
        return preemption_answer(preemption, kept)

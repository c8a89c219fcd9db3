"""The two HTTPS servers, each with a small world of objects behind it and over TLS as they run.

What they would ask of an API server is answered at once, so that every review gets as far as it
can; only bodies are odd here.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path

from prometheus_client import CollectorRegistry

from extender.app import Extender
from extender.memory.in_flight import InFlightPods
from extender.metrics import Metrics as ExtenderMetrics
from extender.serve import scheduler_port
from extender.settings import Settings as ExtenderSettings
from extender.unscheduled_pods import UnscheduledPods
from kube.api.access import Access
from kube.api.kinds import Kind, Served
from kube.api.resources import Resource
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.core import Namespace
from kube.objects.ray import RayJob
from kube.objects.user import User
from runtime.http_server import Port, listening
from runtime.tls import HotCertificate
from tests.extender.conftest import Known, Pki
from tests.extender.worlds import gang, ledger, node
from tests.webhook.test_quota_room import cpus
from webhook.app import Webhook
from webhook.hold_app import HoldWebhook
from webhook.holding import NamespaceRead, Read, queues_of
from webhook.metrics import Metrics as WebhookMetrics
from webhook.owners import AppWrapperKey, Key, Marks
from webhook.settings import Settings as WebhookSettings
from webhook.wrap_app import WrapWebhook

PATIENCE = 25.0
"""Seconds that a busy machine has for what should take milliseconds."""
BODY_LIMIT = 1 << 20
_GANG = {names.OPT_IN: "true"}
_VERBS = frozenset(("create", "get", "delete"))


@dataclass(frozen=True)
class Listening:
    """Where a server listens, what its callers show, and what it counts."""

    port: int
    context: ssl.SSLContext
    metrics: CollectorRegistry


class _Silent:
    """Takes no news of certificates."""

    def certificate_loaded(self, _: datetime) -> None:
        """Nothing."""

    def certificate_refused(self, reason: str) -> None:
        raise AssertionError(reason)


# ---- the webhook


class _AllKnown:
    """Knows every object that a review may name: of a gang, and AppWrappers as Muster's."""

    def find(self, key: Key) -> Marks:
        note = {names.CREATED_BY: ""} if isinstance(key, AppWrapperKey) else {}
        return Marks(_GANG, note)

    async def read(self, key: Key) -> Marks:
        return self.find(key)


class _Owners:
    """Reads namespaces that opt in, and RayJobs that have nothing against being held."""

    async def read(self, wanted: Read) -> Namespace | RayJob | None:
        if isinstance(wanted, NamespaceRead):
            return Namespace(ObjectMeta(labels=_GANG))
        return RayJob()


class _AllServed:
    """Serves every kind of a group that it knows, and allows all."""

    async def find(self, kind: Kind) -> Served | None:
        known = len(kind.group) < 64
        return Served(Resource(kind.group, "v1", kind.name.lower()), _VERBS) if known else None

    async def is_allowed(self, _user: User, _access: Access) -> bool:
        return True


@contextlib.asynccontextmanager
async def webhook(directory: Path) -> AsyncIterator[Listening]:
    """The webhook with all its paths."""
    pki, metrics = Pki(directory), WebhookMetrics()
    settings = WebhookSettings(
        app_wrappers="All",
        body_limit_bytes=BODY_LIMIT,
        read_timeout_seconds=PATIENCE,
        lookup_deadline_seconds=PATIENCE,
        rights_deadline_seconds=PATIENCE,
    )
    known, served = _AllKnown(), _AllServed()
    application = Webhook(settings, known, known, metrics).application()
    full = [cpus(used="8")]
    holder = HoldWebhook(settings, lambda: queues_of(()), lambda _: full, _Owners(), metrics)
    wrapping = WrapWebhook(settings, served, served.is_allowed, metrics)
    application.router.add_post("/hold", holder.hold)
    application.router.add_post("/note-app-wrapper", wrapping.note)
    application.router.add_post("/judge-app-wrapper", wrapping.judge)
    tls = HotCertificate(directory / "tls.crt", directory / "tls.key", _Silent())
    tls.refresh()
    limits = replace(settings.limits, received=4 * BODY_LIMIT, headers=60.0)
    port = Port("reviews", "127.0.0.1", 0, tls=tls.context, limits=limits)
    async with listening(application, port, metrics.connections) as number:
        yield Listening(number, pki.stranger(), metrics.registry)


# ---- the extender


@contextlib.asynccontextmanager
async def extender(directory: Path) -> AsyncIterator[Listening]:
    """The extender, with the nodes of the recorded questions, of which the first is reserved."""
    pki, metrics = Pki(directory), ExtenderMetrics()
    settings = ExtenderSettings(
        listen_address=ip_address("127.0.0.1"),
        listen_port=0,
        settle_seconds=0,
        body_limit_bytes=BODY_LIMIT,
        call_seconds=PATIENCE,
        handshake_seconds=60.0,
        header_seconds=60.0,
    )
    known = Known(ledger(node("rec-0"), node("rec-1"), gang(slots={"rec-0": 1})))
    in_flight = InFlightPods(settle=0.0, keep=30.0, limit=100)
    tls = HotCertificate(
        directory / "tls.crt",
        directory / "tls.key",
        _Silent(),
        client_ca=directory / "ca.crt",
    )
    tls.refresh()
    made = Extender(settings, known, in_flight, UnscheduledPods(), metrics)
    async with scheduler_port(settings, made, tls, metrics.connections) as number:
        yield Listening(number, pki.caller(), metrics.registry)


Serve = Callable[[Path], contextlib.AbstractAsyncContextManager[Listening]]

SERVERS: dict[str, Serve] = {"webhook": webhook, "extender": extender}

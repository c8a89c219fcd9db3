"""Serves the page in the cluster, over TLS, to people who each bring their own token."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import structlog
from prometheus_client import CollectorRegistry

from cli.endings import Unusable
from cli.page.reading.routes import LINKS
from cli.page.safety.callers import ByToken
from cli.page.safety.guards import only_our_writes
from cli.page.server import application
from kube.api.credentials import token_access
from runtime.connections import ConnectionMetrics, Limits
from runtime.http_server import Port, in_background, listening
from runtime.tls import HotCertificate

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator
    from datetime import datetime
    from pathlib import Path

    from cli.page.reading.links import Link

log = structlog.get_logger(__name__)

LOOK: Final = 5.0
"""Seconds between looks at the certificate."""

CONNECTIONS: Final = 1000
"""A browser keeps six, and one more for each log that it follows."""


@dataclass(frozen=True, slots=True)
class InCluster:
    """Where the page listens, what it shows callers, and the API server it passes tokens to."""

    address: str
    port: int
    certificate: Path
    key: Path
    server: str
    ca: str | None
    timeout: float
    origins: tuple[str, ...] = field(default=())
    links: tuple[Link, ...] = field(default=())


@asynccontextmanager
async def serving_in_cluster(at: InCluster) -> AsyncIterator[tuple[int, list[asyncio.Task[None]]]]:
    """Serve; gives the port, and the tasks that must not end. Raises Unusable."""
    shown = HotCertificate(at.certificate, at.key, _News())
    shown.refresh()
    if not shown.usable:
        raise Unusable(f"--certificate {at.certificate} with --key {at.key} cannot be used")
    _check_api_server(at)
    callers = ByToken(at.server, at.ca, at.timeout)
    page = application(callers, [only_our_writes("https", "", at.origins)], None)
    page[LINKS] = at.links
    metrics = ConnectionMetrics("dashboard", CollectorRegistry())
    port = Port("dashboard", at.address, at.port, shown.context, Limits(CONNECTIONS))
    async with (
        in_background([lambda: shown.watch(LOOK)]) as tasks,
        listening(page, port, metrics) as number,
    ):
        yield number, tasks


def _check_api_server(at: InCluster) -> None:
    """Say at the start what each request would fail for."""
    try:
        token_access(at.server, at.ca, "none")
    except (OSError, ValueError) as error:
        raise Unusable(f"--api-server {at.server} with --api-server-ca {at.ca}: {error}") from None


class _News:
    """Puts what happens to the certificate into the log."""

    def certificate_loaded(self, expires: datetime) -> None:
        """Tell of a new certificate in use."""
        log.info("certificate loaded", expires=expires.isoformat())

    def certificate_refused(self, reason: str) -> None:
        """Tell of a pair that stays unused."""
        log.error("certificate refused, the one before stays in use", reason=reason)

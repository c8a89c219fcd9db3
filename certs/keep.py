"""Checks certificates in the cluster again and again, and repairs what was changed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from certs.chain import CertificateError
from certs.secret import BootstrapError
from kube.api.errors import KubeError

FAULTS = (KubeError, CertificateError, BootstrapError)
"""What may be wrong with the cluster or with what it holds; the text says what."""

RETRY = 5.0
"""Seconds until the next attempt after one that failed."""


async def keep(
    once: Callable[[], Awaitable[str]],
    every: float,
    stop: asyncio.Event,
    say: Callable[[str], None],
) -> None:
    """Do it now and again every so many seconds until told to stop, and say what is new."""
    said = None
    while not stop.is_set():
        try:
            found, pause = await once(), every
        except FAULTS as error:
            found, pause = str(error), min(RETRY, every)
        if found != said:
            say(found)
            said = found
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await stop.wait()

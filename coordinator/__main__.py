"""`python -m coordinator`: read the settings, log in JSON, coordinate until SIGTERM."""

import asyncio
import contextlib
import signal
import sys

from coordinator.metrics import CONNECTIONS
from coordinator.settings import PREFIX, Settings
from coordinator.shell.app import Coordinator
from coordinator.shell.health import application
from kube.api.client import Client
from kube.api.credentials import load_access
from runtime.http_server import Port, listening
from runtime.program import run_program


async def _connect(settings: Settings) -> None:
    kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
    access = await load_access(kubeconfig, setting=f"{PREFIX}KUBECONFIG")
    client = Client(access, user_agent="muster-coordinator", timeout=settings.request_timeout)
    async with client:
        await _coordinate(Coordinator(settings, client), settings)


async def _coordinate(coordinator: Coordinator, settings: Settings) -> None:
    address, limits = settings.listen_address, settings.limits
    health = Port("health", address, settings.listen_port, limits=limits)
    async with listening(application(coordinator), health, CONNECTIONS):
        await _until_told_to_stop(coordinator)


async def _until_told_to_stop(coordinator: Coordinator) -> None:
    work = asyncio.create_task(coordinator.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work


def main() -> int:
    """Run the coordinator."""
    return run_program(Settings, PREFIX, _connect)


if __name__ == "__main__":
    sys.exit(main())

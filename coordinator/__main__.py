"""`python -m coordinator`: read the settings, log in JSON, coordinate until SIGTERM."""

import asyncio
import contextlib
import signal
import sys

import structlog
from aiohttp import web

from coordinator.app import Coordinator
from coordinator.health import application
from coordinator.settings import PREFIX, Settings
from kube.auth import load_access
from kube.client import Client
from kube.errors import KubeError
from kube.program import SettingsError, load_settings, log_json

log = structlog.get_logger(__name__)

_BAD_SETTINGS = 2
_CANNOT_RUN = 1


async def _main(settings: Settings) -> None:
    kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
    access = await load_access(kubeconfig)
    client = Client(access, user_agent="muster-coordinator", timeout=settings.request_timeout)
    async with client:
        await _coordinate(Coordinator(settings, client), settings)


async def _coordinate(coordinator: Coordinator, settings: Settings) -> None:
    runner = web.AppRunner(application(coordinator), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, settings.listen_address, settings.listen_port).start()
        await _until_told_to_stop(coordinator)
    finally:
        await runner.cleanup()


async def _until_told_to_stop(coordinator: Coordinator) -> None:
    work = asyncio.create_task(coordinator.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work


def main() -> int:
    """Run the coordinator; the exit code is 2 for bad settings and 1 when it cannot run."""
    try:
        settings = load_settings(Settings, PREFIX)
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201  (how to log is a setting, too)
        return _BAD_SETTINGS
    log_json(settings.log_level)
    try:
        asyncio.run(_main(settings))
    except (KubeError, OSError) as error:
        log.error("cannot run", reason=str(error))
        return _CANNOT_RUN
    return 0


if __name__ == "__main__":
    sys.exit(main())

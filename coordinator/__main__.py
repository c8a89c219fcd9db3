"""`python -m coordinator`: read the settings, log in JSON, coordinate until SIGTERM."""

import argparse
import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

from coordinator.metrics import CONNECTIONS
from coordinator.replay.recorder import Recorder
from coordinator.settings import PREFIX, Settings
from coordinator.shell.app import Coordinator, state_settings
from coordinator.shell.health import application
from kube.api.client import Client
from kube.api.credentials import load_access
from runtime.http_server import Port, listening
from runtime.program import run_program

MIB = 1 << 20


@contextlib.contextmanager
def _recording(settings: Settings) -> Iterator[Recorder | None]:
    """Record for as long as the block lasts, where that is asked for."""
    if settings.record is None:
        yield None
        return
    limit, version = settings.record_limit * MIB, metadata.version("muster")
    recorder = Recorder(settings.record, limit, version, state_settings(settings))
    try:
        yield recorder
    finally:
        recorder.close()


async def _run(settings: Settings) -> None:
    with _recording(settings) as recorder:
        await _connect(settings, recorder)


async def _connect(settings: Settings, recorder: Recorder | None) -> None:
    kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
    access = await load_access(kubeconfig, setting=f"{PREFIX}KUBECONFIG")
    client = Client(access, user_agent="muster-coordinator", timeout=settings.request_timeout)
    async with client:
        await _coordinate(Coordinator(settings, client, recorder), settings)


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


def _given() -> dict[str, Any]:
    """Read the one setting that may be given as an option, too: it is for one run."""
    parser = argparse.ArgumentParser("python -m coordinator", description=__doc__)
    name = f"{PREFIX}RECORD"
    said = f"write every event and every action to this file; replaces {name}"
    parser.add_argument("--record", metavar="FILE", type=Path, help=said)
    given = parser.parse_args().record
    return {} if given is None else {"record": given}


def main() -> int:
    """Run the coordinator."""
    return run_program(Settings, PREFIX, _run, _given())


if __name__ == "__main__":
    sys.exit(main())

"""`python -m webhook`: read the settings, log in JSON, serve until SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import sys

from kube.program import run_program
from webhook.serve import serve
from webhook.settings import PREFIX, Settings


async def _serve_until_told_to_stop(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(settings, stop)


def main() -> int:
    """Run the webhook."""
    return run_program(Settings, PREFIX, _serve_until_told_to_stop)


if __name__ == "__main__":
    sys.exit(main())

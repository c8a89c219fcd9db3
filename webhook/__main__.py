"""`python -m webhook`: read the settings, log in JSON, serve until SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import sys

import structlog

from kube.errors import KubeError
from kube.program import SettingsError, load_settings, log_json
from webhook.serve import serve
from webhook.settings import PREFIX, Settings

log = structlog.get_logger(__name__)

_BAD_SETTINGS = 2
_CANNOT_SERVE = 1


async def _main(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(settings, stop)


def main() -> int:
    """Run the webhook; the exit code is 2 for bad settings and 1 when it cannot serve."""
    try:
        settings = load_settings(Settings, PREFIX)
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201  (how to log is a setting, too)
        return _BAD_SETTINGS
    log_json(settings.log_level)
    try:
        asyncio.run(_main(settings))
    except (KubeError, OSError) as error:
        log.error("cannot serve", reason=str(error))
        return _CANNOT_SERVE
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m webhook`: read the settings, log in JSON, serve until SIGTERM."""

from __future__ import annotations

import sys

from runtime.http_server import stop_signals
from runtime.program import run_program
from webhook.serve import serve
from webhook.settings import PREFIX, Settings


async def _serve_until_told_to_stop(settings: Settings) -> None:
    await serve(settings, stop_signals())


def main() -> int:
    """Run the webhook."""
    return run_program(Settings, PREFIX, _serve_until_told_to_stop)


if __name__ == "__main__":
    sys.exit(main())

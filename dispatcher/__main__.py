"""`python -m dispatcher`: read the settings, log in JSON, work until SIGTERM."""

import sys

from dispatcher.settings import PREFIX, Settings
from dispatcher.shell.app import serve
from runtime.http_server import stop_signals
from runtime.program import run_program


async def _serve_until_told_to_stop(settings: Settings) -> None:
    await serve(settings, stop_signals())


def main() -> int:
    """Run the program."""
    return run_program(Settings, PREFIX, _serve_until_told_to_stop)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m extender`: read the settings, log in JSON, answer kube-scheduler until SIGTERM."""

import sys

from extender.serve import serve
from extender.settings import PREFIX, Settings
from runtime.program import run_program


def main() -> int:
    """Run the extender."""
    return run_program(Settings, PREFIX, serve)


if __name__ == "__main__":
    sys.exit(main())

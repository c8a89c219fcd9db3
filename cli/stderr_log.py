"""Sends what the libraries log to standard error: standard output is for the answer."""

import sys

import structlog


def log_to_stderr() -> None:
    """Log as structlog does by default, whatever was set up before."""
    structlog.reset_defaults()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))

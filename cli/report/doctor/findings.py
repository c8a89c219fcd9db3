"""Describes what a check of `muster doctor` found, and what to do about it."""

from enum import StrEnum

from cli.report.snapshot import Unread
from kube.objects.base import Slim


class State(StrEnum):
    """How something is. UNKNOWN: it could not be read."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


class Finding(Slim, frozen=True):
    """One thing that was looked at; `remedy` is empty where there is nothing to do."""

    check: str
    state: State
    message: str
    remedy: str = ""


def ok(check: str, message: str) -> Finding:
    """Say that a thing is well."""
    return Finding(check, State.OK, message)


def warn(check: str, message: str, remedy: str) -> Finding:
    """Say what is not as it should be, though it works."""
    return Finding(check, State.WARN, message, remedy)


def fail(check: str, message: str, remedy: str) -> Finding:
    """Say what does not work."""
    return Finding(check, State.FAIL, message, remedy)


def unknown(check: str, message: str, remedy: str) -> Finding:
    """Say what could not be seen."""
    return Finding(check, State.UNKNOWN, message, remedy)


def unread(check: str, found: Unread) -> Finding:
    """Say what may not be read, and who could."""
    remedy = f"ask with an account that may list {found.kind}"
    return Finding(check, State.UNKNOWN, found.message, remedy)

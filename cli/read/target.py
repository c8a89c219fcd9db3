"""Selects which cluster to read, and how long to wait for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """A cluster as the command line names it; `timeout` is that of one request, in seconds."""

    kubeconfig: str | None = None
    context: str | None = None
    timeout: float = 10.0

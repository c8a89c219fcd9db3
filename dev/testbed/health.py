"""Asks a program of the control plane whether it is healthy."""

from __future__ import annotations

import http.client
from dataclasses import dataclass
from pathlib import Path

from testbed import components
from testbed.api import answers_ok, trust_of
from testbed.components import Ports

_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class Endpoint:
    """Where a program says how it is."""

    port: int
    path: str
    secured: bool = False


def endpoint(name: str, ports: Ports) -> Endpoint | None:
    """Return the endpoint of one of the control plane's programs, None for any other program."""
    return {
        components.ETCD: Endpoint(ports.etcd, "/health"),
        components.KWOK: Endpoint(ports.kwok, "/healthz"),
        components.KUBERAY: Endpoint(ports.kuberay_health, "/readyz"),
        components.API_SERVER: Endpoint(ports.apiserver, "/readyz", secured=True),
        components.CONTROLLER_MANAGER: Endpoint(ports.controller_manager, "/healthz", secured=True),
        components.SCHEDULER: Endpoint(ports.scheduler, "/readyz", secured=True),
    }.get(name)


def is_healthy(asked: Endpoint, ca_file: Path) -> bool:
    """Ask for the program's health over loopback."""
    return answers_ok(_connection(asked, ca_file), asked.path)


def _connection(asked: Endpoint, ca_file: Path) -> http.client.HTTPConnection:
    if not asked.secured:
        return http.client.HTTPConnection("127.0.0.1", asked.port, timeout=_TIMEOUT_SECONDS)
    context = trust_of(ca_file)
    return http.client.HTTPSConnection(
        "127.0.0.1", asked.port, timeout=_TIMEOUT_SECONDS, context=context
    )

"""Is a program of the control plane fit for use, by its own word?"""

from __future__ import annotations

import http.client
import ssl
from pathlib import Path

from testbed import components
from testbed.api import answers_ok
from testbed.components import Ports

_TIMEOUT_SECONDS = 5.0


def is_healthy(name: str, ports: Ports, ca_file: Path) -> bool:
    """Ask one program for its health over loopback."""
    plain = {
        components.ETCD: (ports.etcd, "/health"),
        components.KWOK: (ports.kwok, "/healthz"),
        components.KUBERAY: (ports.kuberay_health, "/readyz"),
    }
    if name in plain:
        port, path = plain[name]
        return answers_ok(_plain_connection(port), path)
    secured = {
        components.API_SERVER: (ports.apiserver, "/readyz"),
        components.CONTROLLER_MANAGER: (ports.controller_manager, "/healthz"),
        components.SCHEDULER: (ports.scheduler, "/readyz"),
    }
    port, path = secured[name]
    return answers_ok(_secured_connection(port, ca_file), path)


def _plain_connection(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)


def _secured_connection(port: int, ca_file: Path) -> http.client.HTTPConnection:
    context = ssl.create_default_context(cafile=str(ca_file))
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS, context=context)

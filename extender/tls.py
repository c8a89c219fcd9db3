"""Admits callers of the extender by mutual TLS.

A caller must show a certificate that our authority signed and that bears kube-scheduler's name.
"""

import ssl
from pathlib import Path
from typing import Any

from runtime.tls import server_context


def demanding_context(client_ca: Path) -> ssl.SSLContext:
    """Make a context that demands a certificate signed by this authority."""
    context = server_context()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(client_ca)
    return context


def caller_name(certificate: Any) -> str:
    """The common name in a verified certificate, as `ssl` gives it; empty where there is none."""
    subject = (certificate or {}).get("subject", ())
    names = [value for part in subject for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else ""

"""Admits callers of the extender by mutual TLS.

A caller must show a certificate of an authority of ours that bears kube-scheduler's name.
"""

import ssl
from collections.abc import Callable
from typing import Any

RECENT = 3600.0
"""Seconds after its last call for which a caller's certificate is in the metrics: a kube-scheduler
that was stopped, or calls another replica now, must not stay there for ever."""


def caller_name(certificate: Any) -> str:
    """The common name in a verified certificate, as `ssl` gives it; empty where there is none."""
    subject = (certificate or {}).get("subject", ())
    names = [value for part in subject for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else ""


class LastCaller:
    """Remembers when the certificate ends that was shown in the last call."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._text = ""
        self._ends = 0.0
        self._called = 0.0

    def called(self, certificate: Any) -> None:
        """Take note of a call by the scheduler."""
        self._called = self._clock()
        text = str((certificate or {}).get("notAfter", ""))
        if text != self._text:
            self._text = text
            self._ends = float(ssl.cert_time_to_seconds(text)) if text else 0.0

    def expires(self) -> float:
        """Return when the certificate ends, in seconds since 1970; 0 where no call came of late."""
        return self._ends if self._clock() - self._called < RECENT else 0.0

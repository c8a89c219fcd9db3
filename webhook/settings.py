"""The settings of the webhook.

Every setting is an environment variable MUSTER_WEBHOOK_NAME. None is called PORT or SERVICE_...:
Kubernetes puts MUSTER_WEBHOOK_PORT=tcp://... into every pod beside a Service `muster-webhook`.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kube.objects.names import DEFAULT_NAMESPACE, KUBE_SYSTEM, MANAGED_BY
from kube.objects.user import SERVICE_ACCOUNT
from runtime.program import ProgramSettings

PREFIX = "MUSTER_WEBHOOK_"
# client-go keeps an idle connection for 90 s. A server that closes first loses the review that the
# API server is sending at that moment.
CALLER_IDLE_SECONDS = 90
# The API server waits 10 s unless the webhook's configuration says otherwise; 30 s is its most.
LONGEST_REVIEW_SECONDS = 30

ACCOUNT = rf"^{SERVICE_ACCOUNT}[^:]+:[^:]+$"
REDIS = r"^(redis://[-.a-z0-9]+:[0-9]{1,5})?$"

Port = Annotated[int, Field(ge=0, le=65535)]
Address = IPv4Address | IPv6Address


class Settings(ProgramSettings):
    """The settings of the webhook, with their defaults."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    listen_address: Address = IPv4Address("0.0.0.0")  # noqa: S104  (a Service calls the pod's IP)
    listen_port: Port = 9443
    health_address: Address = IPv4Address("0.0.0.0")  # noqa: S104  (the kubelet calls the pod's IP)
    health_port: Port = 8081
    certificate_file: Path = Path("/etc/muster/tls/tls.crt")
    key_file: Path = Path("/etc/muster/tls/tls.key")
    certificate_poll_seconds: float = Field(default=2.0, ge=0.1, le=600)
    kubeconfig: Path | None = None
    lookup_deadline_seconds: float = Field(default=2.0, gt=0, lt=LONGEST_REVIEW_SECONDS)
    app_wrappers: Literal["None", "Named", "All"] = "None"
    """Which AppWrappers are Muster's: none, those with Muster in spec.managedBy, or also those
    without spec.managedBy."""
    wrapper_account: Annotated[str, Field(pattern=ACCOUNT)] = (
        f"{SERVICE_ACCOUNT}{DEFAULT_NAMESPACE}:muster-wrapper"
    )
    """The user that the wrapper is for the API server; it creates what is wrapped."""
    redis_address: Annotated[str, Field(pattern=REDIS)] = ""
    """Where heads with the label for fault tolerance keep their state; empty: nowhere."""
    dispatch: bool = False
    """Whether objects in queues with `clusters` are sent to those."""
    rights_deadline_seconds: float = Field(default=8.0, gt=0, lt=LONGEST_REVIEW_SECONDS)
    lookups_in_flight: int = Field(default=256, ge=1, le=10_000)
    body_limit_bytes: int = Field(default=8 * 1024 * 1024, ge=64 * 1024, le=64 * 1024 * 1024)
    read_timeout_seconds: float = Field(default=5.0, gt=0, lt=LONGEST_REVIEW_SECONDS)
    keepalive_seconds: float = Field(default=120.0, gt=CALLER_IDLE_SECONDS, le=3600)
    track_field_owners: bool = False
    shutdown_delay_seconds: float = Field(default=0.0, ge=0, le=60)
    drain_seconds: float = Field(default=10.0, gt=0, le=120)

    @property
    def managed_by(self) -> frozenset[str]:
        """The values of spec.managedBy with which an AppWrapper is Muster's; "" is none."""
        taken = {"None": (), "Named": (MANAGED_BY,), "All": (MANAGED_BY, "")}
        return frozenset(taken[self.app_wrappers])

    @property
    def left_alone(self) -> frozenset[str]:
        """The namespaces in which no AppWrapper is created: kube-system and Muster's own."""
        home = self.wrapper_account.removeprefix(SERVICE_ACCOUNT).partition(":")[0]
        return frozenset((KUBE_SYSTEM, home))

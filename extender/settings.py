"""The settings of the extender: environment variables, prefix MUSTER_EXTENDER_.

None is called PORT or SERVICE_...: Kubernetes puts MUSTER_EXTENDER_PORT=tcp://... into every pod
beside a Service `muster-extender`.
"""

from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from kube.devices.feature_gates import GatesOff
from kube.objects import names
from kube.objects.namespace import NamespaceName
from runtime.program import ProgramSettings

PREFIX = "MUSTER_EXTENDER_"

Port = Annotated[int, Field(ge=0, le=65535)]
Address = IPv4Address | IPv6Address


class Settings(ProgramSettings):
    """The settings, validated together at the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    kubeconfig: Path | None = None
    """Path of a kubeconfig; unset: KUBECONFIG, then the service account of the pod."""

    listen_address: Address = IPv4Address("0.0.0.0")  # noqa: S104  (a Service calls the pod's IP)
    listen_port: Port = 9444
    """Where kube-scheduler calls, over TLS with its certificate."""

    health_address: Address = IPv4Address("0.0.0.0")  # noqa: S104  (the kubelet calls the pod's IP)
    health_port: Port = 8081
    """Plain HTTP: /livez, /readyz and /metrics."""

    certificate_file: Path = Path("/etc/muster/tls/tls.crt")
    key_file: Path = Path("/etc/muster/tls/tls.key")
    """The pair shown to the scheduler; a new one is taken up while serving."""

    client_ca_file: Path = Path("/etc/muster/tls/ca.crt")
    """The authority that signed the scheduler's certificate; read with the pair."""

    client_name: str = Field(default="system:kube-scheduler", min_length=1)
    """The common name that a caller's certificate must bear."""

    certificate_poll_seconds: float = Field(default=2.0, ge=0.1, le=600)

    silence_seconds: float = Field(default=90.0, ge=1, le=600)
    """A watch that is silent for longer is not trusted until it has delivered what was missed;
    bookmarks come every minute."""

    settle_seconds: float = Field(default=5.0, ge=0, le=60)
    """Before the first question, and during a pause of this length, another process may have passed
    pods that are not seen bound yet: for so long only gangs get nodes with reserved room."""

    passed_seconds: float = Field(default=2400.0, gt=0, le=86_400)
    """How long a passed pod counts that is not seen bound or gone: as long as kube-scheduler may
    hold on to it, and longer than `silence_seconds`, or the pod would be forgotten while a watch is
    trusted that has not reported it. The default covers 15 minutes for Permit plugins (the most
    there is), 10 for volumes (bindTimeoutSeconds) and 10 for devices to be bound.
    """

    passed_limit: int = Field(default=5000, ge=1, le=100_000)
    """How many such pods are remembered; beyond that only gangs get nodes with reserved room."""

    protect_minimum: bool = True
    """Whether pods of a gang's minimum are kept from preemption."""

    app_wrappers: bool = False
    """Whether there are gangs of AppWrappers, as in the coordinator's setting of this name."""

    feature_gates_off: GatesOff = Field(default=(), validate_default=False)
    """Feature gates for devices that kube-scheduler runs without, as in the coordinator's setting
    of this name."""

    wake_namespace: NamespaceName = names.DEFAULT_NAMESPACE
    """The namespace of the object that is written to have refused pods tried again."""

    wake_pause_seconds: float = Field(default=1.0, ge=0.05, le=60)
    """At most one such write in this time; less than `settle_seconds`, or pods that were refused in
    doubt would be tried again only when there is doubt again."""

    body_limit_bytes: int = Field(default=8 * 1024 * 1024, ge=64 * 1024, le=512 * 1024 * 1024)
    """Names of 5,000 nodes are 0.2 MB; whole nodes (nodeCacheCapable: false) are 50 MB."""

    call_seconds: float = Field(default=1.0, gt=0, le=30)
    """The deadline of a call, from its first line to the answer."""

    handshake_seconds: float = Field(default=5.0, gt=0, le=60)
    keepalive_seconds: float = Field(default=120.0, gt=90, le=3600)
    """Longer than the 90 s after which Go's client drops an idle connection."""

    @model_validator(mode="after")
    def _woken_before_doubt(self) -> "Settings":
        if self.settle_seconds and self.wake_pause_seconds >= self.settle_seconds:
            raise ValueError("wake_pause_seconds must be less than settle_seconds")
        return self

    @model_validator(mode="after")
    def _remembered_while_trusted(self) -> "Settings":
        if self.passed_seconds <= self.silence_seconds:
            raise ValueError(
                f"passed_seconds {self.passed_seconds} must be more than "
                f"silence_seconds {self.silence_seconds}"
            )
        return self

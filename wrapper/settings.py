"""The settings of the wrapper: environment variables with the prefix MUSTER_WRAPPER_."""

import socket
import uuid
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field, Json, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from kube.objects import names
from runtime.program import ProgramSettings

PREFIX = "MUSTER_WRAPPER_"

Api: TypeAlias = Literal["workload.codeflare.dev/v1beta2", "mcad.ibm.com/v1beta1"]
"""Where AppWrappers are watched; the first also has those that were written as v1beta1."""


def _default_identity() -> str:
    # Of this process alone: a Lease that bears our name is taken without waiting.
    return f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"


class Settings(ProgramSettings):
    """The settings, validated together at the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    kubeconfig: Path | None = None
    """Path of a kubeconfig; unset: KUBECONFIG, then the service account of the pod."""

    namespace: str = names.DEFAULT_NAMESPACE
    """Namespace of the Lease."""

    identity: str = Field(default_factory=_default_identity, min_length=1)
    """Name of this replica in the Lease; unique among the replicas."""

    apis: Json[tuple[Api, ...]] = Field(
        default=("workload.codeflare.dev/v1beta2", "mcad.ibm.com/v1beta1"), validate_default=False
    )
    """Which AppWrappers there may be, as JSON; one that is not served is asked for again."""

    lease_duration: float = Field(default=15.0, gt=0, le=3600)
    """Seconds after which a silent leader may be replaced; client-go's number."""

    renew_deadline: float = Field(default=10.0, gt=0, le=3600)
    """Seconds after which a leader that cannot renew stops, before it can be replaced."""

    retry_period: float = Field(default=2.0, gt=0, le=3600)
    """Seconds between attempts at the Lease."""

    concurrency: int = Field(default=16, ge=1, le=500)
    """AppWrappers for which something is under way at once, one request each."""

    request_timeout: float = Field(default=10.0, gt=0, le=3600)
    """Seconds for one request."""

    listen_address: str = "127.0.0.1"
    """Address of the health and metrics endpoint; the manifests set 0.0.0.0."""

    listen_port: int = Field(default=8083, ge=0, le=65535)
    """Port of the health and metrics endpoint."""

    @field_validator("apis")
    @classmethod
    def _some(cls, apis: tuple[str, ...]) -> tuple[str, ...]:
        if not apis or len(set(apis)) < len(apis):
            fault = "empty" if not apis else "named twice"
            raise ValueError(f"{fault}; allowed: one or more of them, each once")
        return apis

    @model_validator(mode="after")
    def _ordered(self) -> "Settings":
        if not self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError(
                f"retry_period {self.retry_period} < renew_deadline {self.renew_deadline} < "
                f"lease_duration {self.lease_duration} must hold, or two replicas could lead"
            )
        return self

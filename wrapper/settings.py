"""The settings of the wrapper: environment variables with the prefix MUSTER_WRAPPER_."""

from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field, Json, field_validator
from pydantic_settings import SettingsConfigDict

from kube.objects import names
from kube.objects.namespace import NamespaceName
from runtime.leader_settings import LeaderSettings

PREFIX = "MUSTER_WRAPPER_"

Api: TypeAlias = Literal["workload.codeflare.dev/v1beta2", "mcad.ibm.com/v1beta1"]
"""Where AppWrappers are watched; the first also has those that were written as v1beta1."""


class Settings(LeaderSettings):
    """The settings, validated together at the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    kubeconfig: Path | None = None
    """Path of a kubeconfig; unset: KUBECONFIG, then the service account of the pod."""

    namespace: NamespaceName = names.DEFAULT_NAMESPACE
    """Namespace of the Lease."""

    apis: Json[tuple[Api, ...]] = Field(
        default=("workload.codeflare.dev/v1beta2", "mcad.ibm.com/v1beta1"),
        validate_default=False,
        description='a list of API groups with versions, as JSON: ["mcad.ibm.com/v1beta1"]',
    )
    """Which AppWrappers there may be, as JSON; one that is not served is asked for again."""

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

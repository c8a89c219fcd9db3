"""The settings of the program: environment variables with the prefix MUSTER_REDIS_."""

from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field, Json, field_validator
from pydantic_settings import SettingsConfigDict

from kube.objects import names
from kube.objects.namespace import NamespaceName
from runtime.leader_settings import LeaderSettings

PREFIX = "MUSTER_REDIS_"

Server: TypeAlias = Annotated[str, Field(pattern=r"^[-.a-z0-9]+:[0-9]{1,5}$")]


class Settings(LeaderSettings):
    """The settings, validated together at the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    kubeconfig: Path | None = None
    """Path of a kubeconfig; unset: KUBECONFIG, then the service account of the pod."""

    namespace: NamespaceName = names.DEFAULT_NAMESPACE
    """Namespace of the Lease, of the report and of the Service that has the primary."""

    servers: Json[tuple[Server, ...]] = Field(
        default=tuple(f"muster-redis-server-{n}.muster-redis-servers:6379" for n in range(3)),
        validate_default=False,
        description='a list of hosts with ports, as JSON: ["redis-0.redis:6379"]',
    )
    """The servers, as JSON, under the names that they announce."""

    sentinels: Json[tuple[Server, ...]] = Field(
        default=tuple(f"muster-redis-server-{n}.muster-redis-servers:26379" for n in range(3)),
        validate_default=False,
        description='a list of hosts with ports, as JSON: ["redis-0.redis:26379"]',
    )
    """The Sentinels, as JSON."""

    address: Server = "muster-redis.muster-system.svc:6379"
    """Where heads find the primary; the webhook writes the same into RayClusters."""

    key_directory: Path = Path("/etc/muster/redis")
    """Where keys of users and passwords of administrators are mounted."""

    look_seconds: float = Field(default=2.0, ge=0.05, le=60)
    """Seconds between two looks at the servers."""

    rules_seconds: float = Field(default=60.0, ge=0.05, le=3600)
    """Seconds between two comparisons of all rules; names of users are compared at each look."""

    survey_seconds: float = Field(default=300.0, ge=0.05, le=86_400)
    """Seconds between two walks over all keys: for use by cluster, and for what is left over."""

    limit_bytes: int = Field(default=0, ge=0)
    """Memory that the keys of one RayCluster may take; 0: no limit but that of the servers."""

    server_timeout: float = Field(default=5.0, gt=0, le=60)
    """Seconds for one answer of a server."""

    concurrency: int = Field(default=16, ge=1, le=500)
    """Secrets that are written at once."""

    request_timeout: float = Field(default=10.0, gt=0, le=3600)
    """Seconds for one request to the API server."""

    listen_address: str = "127.0.0.1"
    """Address of the health and metrics endpoint; the manifests set 0.0.0.0."""

    listen_port: int = Field(default=8084, ge=0, le=65535)
    """Port of the health and metrics endpoint."""

    @field_validator("servers", "sentinels")
    @classmethod
    def _some(cls, found: tuple[str, ...]) -> tuple[str, ...]:
        if not found or len(set(found)) < len(found):
            fault = "empty" if not found else "named twice"
            raise ValueError(f"{fault}; allowed: one or more of them, each once")
        return found

    @property
    def url(self) -> str:
        """The address as it stands in RayClusters."""
        return f"redis://{self.address}"

"""The settings of the dispatcher: environment variables with the prefix MUSTER_DISPATCHER_."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kube.objects import names
from kube.objects.namespace import NamespaceName
from runtime.leader_settings import LeaderSettings

PREFIX = "MUSTER_DISPATCHER_"


class Settings(LeaderSettings):
    """The settings, validated together at the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    kubeconfig: Path | None = None
    """Path of a kubeconfig; unset: KUBECONFIG, then the service account of the pod."""

    namespace: NamespaceName = names.DEFAULT_NAMESPACE
    """Namespace of the Lease, and of the Secrets with the kubeconfigs of members."""

    member_namespace: NamespaceName = names.DEFAULT_NAMESPACE
    """Namespace of Muster on members, where the Lease of this manager is."""

    concurrency: int = Field(default=16, ge=1, le=500)
    """Writes to the manager that are under way at once."""

    member_concurrency: int = Field(default=8, ge=1, le=500)
    """Writes to each member that are under way at once."""

    request_timeout: float = Field(default=10.0, gt=0, le=3600)
    """Seconds for one request to the manager."""

    member_timeout: float = Field(default=5.0, gt=0, le=3600)
    """Seconds for one request to a member."""

    probe_seconds: float = Field(default=5.0, gt=0, le=3600)
    """Seconds from one look to the next whether a member answers, and its kubeconfig changed."""

    lost_after: int | None = Field(default=None, ge=5, le=30 * 24 * 3600)
    """Seconds in the place of `clusters.lostAfterSeconds` of every queue; for tests."""

    listen_address: str = "127.0.0.1"
    """Address of the health and metrics endpoint; the manifests set 0.0.0.0."""

    listen_port: int = Field(default=8086, ge=0, le=65535)
    """Port of the health and metrics endpoint."""

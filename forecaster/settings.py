"""The settings of the forecaster: environment variables with the prefix MUSTER_FORECASTER_."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from kube.objects import names
from kube.objects.namespace import NamespaceName
from runtime.program import ProgramSettings

PREFIX = "MUSTER_FORECASTER_"


class Settings(ProgramSettings):
    """The settings, validated together at the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    kubeconfig: Path | None = None
    """Path of a kubeconfig; unset: KUBECONFIG, then the service account of the pod."""

    namespace: NamespaceName = names.DEFAULT_NAMESPACE
    """Namespace of the coordinator, off whose Deployment its settings are read."""

    cpu_share: float = Field(default=0.05, gt=0, le=1)
    """Share of a core that it takes: after a round it rests for as long as that asks for."""

    round_cpu_seconds: float = Field(default=6.0, ge=0.1, le=600)
    """CPU seconds of one round, reading and writing in it; 6 are 5 % of a core for two minutes.

    Gangs that are not reached by then are told by a rate. Ranges are worked out where the round can
    pay for them, else in each eleventh round."""

    rest_seconds: float = Field(default=30.0, ge=0.1, le=3600)
    """Seconds between two rounds at least."""

    moved_seconds: float = Field(default=60.0, ge=1, le=86_400)
    """By so much an estimate must move at least to be written before it is due anew."""

    refresh_seconds: float = Field(default=60.0, ge=1, le=3600)
    """Seconds after which the first 20 estimates are written anew; the others after ten times."""

    request_timeout: float = Field(default=30.0, gt=0, le=3600)
    """Seconds for one request."""

    listen_address: str = "127.0.0.1"
    """Address of the health and metrics endpoint; the manifests set 0.0.0.0."""

    listen_port: int = Field(default=8085, ge=0, le=65535)
    """Port of the health and metrics endpoint."""

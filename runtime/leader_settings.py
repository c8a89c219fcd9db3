"""Holds the settings of a program with several replicas, one of which leads."""

import socket
import uuid
from typing import Self

from pydantic import Field, model_validator

from runtime.program import ProgramSettings


def _default_identity() -> str:
    # Of this process alone: a Lease that bears our name is taken without waiting.
    return f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"


class LeaderSettings(ProgramSettings):
    """What such a program can be told of its Lease, beside its own settings."""

    identity: str = Field(default_factory=_default_identity, min_length=1)
    """Name of this replica in the Lease; unique among the replicas."""

    lease_duration: float = Field(default=15.0, gt=0, le=3600)
    """Seconds after which a silent leader may be replaced; client-go's number."""

    renew_deadline: float = Field(default=10.0, gt=0, le=3600)
    """Seconds after which a leader that cannot renew stops, before it can be replaced."""

    retry_period: float = Field(default=2.0, gt=0, le=3600)
    """Seconds between attempts at the Lease."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError(
                f"retry_period {self.retry_period} < renew_deadline {self.renew_deadline} < "
                f"lease_duration {self.lease_duration} must hold, or two replicas could lead"
            )
        return self

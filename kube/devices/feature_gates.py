"""Reads which feature gates for devices kube-scheduler runs without; no API tells them."""

from typing import Annotated

from pydantic import AfterValidator, Json

from scheduling.model.devices.features import GATES


def _known(gate: str) -> str:
    if gate not in GATES:
        raise ValueError(f"{gate!r} is not valid; allowed: {', '.join(GATES)}")
    return gate


GatesOff = Json[tuple[Annotated[str, AfterValidator(_known)], ...]]
"""Names of gates, as JSON."""

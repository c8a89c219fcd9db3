"""Reads, from settings, the device feature gates that kube-scheduler has off; no API shows them."""

from typing import Annotated

from pydantic import AfterValidator, Field, Json

from scheduling.model.devices.features import GATES


def _known(gate: str) -> str:
    if gate not in GATES:
        raise ValueError(f"{gate!r} is not valid; allowed: {', '.join(GATES)}")
    return gate


GatesOff = Annotated[
    Json[tuple[Annotated[str, AfterValidator(_known)], ...]],
    Field(description='a list of names of feature gates, as JSON: ["DRADeviceTaints"]'),
]
"""Names of gates, as JSON."""

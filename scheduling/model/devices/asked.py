"""The device requests of a pod's claims, and the least number of devices that they get."""

from collections.abc import Iterable
from functools import lru_cache

from scheduling.model.devices.resource_claim import (
    MAX_DEVICES,
    AllocationMode,
    ClaimSpec,
    DeviceRequest,
)
from scheduling.model.shape.restrictions import Claims

CLAIMS_KEPT = 4096


def requests_of(claims: Claims) -> Iterable[DeviceRequest]:
    """Yield what the claims of a pod ask for, alternatives included."""
    for claim in claims:
        for request in claim.requests:
            yield from request.alternatives


@lru_cache(maxsize=CLAIMS_KEPT)
def least_of(claims: Claims) -> int:
    """Return how many devices a pod with these claims is given at least.

    Of a claim that asks for more than it may be given one too many counts, and no more: it may ask
    for any number of 64 bits.
    """
    return sum(min(_least_of_claim(claim), MAX_DEVICES + 1) for claim in claims)


@lru_cache(maxsize=CLAIMS_KEPT)
def promised_to(claims: Claims) -> int:
    """Return the same of a pod on its way: none where a claim asks for more than it may have."""
    most = max(map(_least_of_claim, claims), default=0)
    return least_of(claims) if most <= MAX_DEVICES else 0


def _least_of_claim(claim: ClaimSpec) -> int:
    return sum(min(map(_least, request.alternatives), default=0) for request in claim.requests)


def _least(asked: DeviceRequest) -> int:
    if asked.unsupported:
        return 0  # it may be for devices that others have
    return 1 if asked.mode is AllocationMode.ALL else asked.count

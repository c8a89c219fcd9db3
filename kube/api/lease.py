"""Reads a Lease as it is observed, and says when it is free. Pure."""

import math
from dataclasses import dataclass, replace

import msgspec

ANSWERED = "muster.dev/answered-epoch"
"""Annotation of the Lease: the epoch of a term that ended with all its requests over."""


class _Spec(msgspec.Struct, rename="camel", frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _Meta(msgspec.Struct, rename="camel", frozen=True):
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class Lease(msgspec.Struct, frozen=True):
    """A Lease: who holds it, and since when."""

    metadata: _Meta
    spec: _Spec = _Spec()


@dataclass(frozen=True, slots=True)
class Observation:
    """The record as we last read it, and since when we know it to be like that."""

    uid: str
    version: str
    spec: _Spec
    since: float
    answered: str = ""


def observe(before: Observation | None, lease: Lease, now: float) -> Observation:
    """Return what is known now; an unchanged record keeps its age, an edited label does too."""
    meta = lease.metadata
    answered = (meta.annotations or {}).get(ANSWERED, "")
    seen = Observation(meta.uid, meta.resource_version, lease.spec, now, answered)
    if before is not None and (before.uid, before.spec) == (seen.uid, seen.spec):
        return replace(seen, since=before.since)
    return seen


def free_at(seen: Observation | None, identity: str, lease_duration: float) -> float:
    """Return when the Lease may be taken by `identity`, which leads nothing at the moment."""
    if seen is None or seen.spec.holder_identity in (None, "", identity):
        return -math.inf
    promised = seen.spec.lease_duration_seconds
    return seen.since + (lease_duration if promised is None else promised)


def succeeds_cleanly(seen: Observation | None, epoch: int) -> bool:
    """Return whether a term of this epoch is the first, or follows one with no request under way.

    The first epoch follows none: neither the Lease nor the caller's `floor` knows of an earlier
    one. A term that ends in order says that its requests are over, and of which epoch it was, so
    that the word of an earlier term is not taken for that of the last.
    """
    if epoch == 1:
        return True
    if seen is None or seen.spec.holder_identity not in (None, ""):
        return False
    return seen.answered == str(epoch - 1) == str(seen.spec.lease_transitions)

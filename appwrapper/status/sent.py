"""Words the status of an AppWrapper for another cluster while no cluster has a copy of it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from appwrapper.phases import Phase
from appwrapper.spec.wrapped import Generation
from appwrapper.status.mcad_states import NO_CLUSTER
from appwrapper.status.states import status_of
from appwrapper.status.told import Step, Told
from appwrapper.status.waiting import waiting_step
from kube.objects.app_wrapper import AppWrapperStatus
from kube.objects.clusters.dispatch import JOB_COMPLETE, GangDispatch


class Waits(NamedTuple):
    """Why the gang of an AppWrapper waits, as its Gang says it."""

    reason: str
    message: str


def status_without_copy(
    spec: Mapping[str, Any],
    status: Mapping[str, Any],
    record: GangDispatch | None,
    waits: Waits | None,
    now: float,
) -> dict[str, Any] | None:
    """Return the status of an AppWrapper by its record; None where what it says stays so.

    `waits` is why it is not its turn, None where it is. `now` is in seconds since 1970.
    """
    known = msgspec.convert(status, AppWrapperStatus)
    if waits is not None:
        return _worded(spec, known, _before_turn(waits, now))
    if record is None:
        return None
    if record.end:
        is_told = known.phase in (Phase.SUCCEEDED, Phase.FAILED)
        return None if is_told else _worded(spec, known, _at_end(record, now))
    return _worded(spec, known, _waiting(record, known, now))


def _before_turn(waits: Waits, now: float) -> Told:
    """Say what a cluster of its own would say: clusters are not asked yet."""
    step = waiting_step(waits.reason)
    return Told(step, Phase.SUSPENDED, now, waits.reason, waits.message)


def _at_end(record: GangDispatch, now: float) -> Told:
    said = record.message
    if record.end == JOB_COMPLETE:
        return Told(Step.SUCCEEDED, Phase.SUCCEEDED, now, message=said)
    return Told(Step.BROKEN, Phase.FAILED, now, message=said, detail=said)


def _waiting(record: GangDispatch, known: AppWrapperStatus, now: float) -> Told:
    """Say what MCAD says once clusters were asked in vain, until one has room."""
    if record.is_recorded:
        said = f"it starts on cluster {record.cluster}"
        return Told(Step.FIRST, Phase.SUSPENDED, now, message=said)
    if record.refusals or known.message == NO_CLUSTER:
        return Told(Step.NO_CLUSTER, Phase.SUSPENDED, now, message=NO_CLUSTER)
    return Told(Step.FIRST, Phase.SUSPENDED, now, message="it waits for a cluster")


def _worded(spec: Mapping[str, Any], known: AppWrapperStatus, said: Told) -> dict[str, Any]:
    is_of_mcad = spec.get("components") is None and spec.get("resources") is not None
    generation = Generation.MCAD if is_of_mcad else Generation.CODEFLARE
    after = status_of(generation, said, replace(known, component_status=()))
    found: dict[str, Any] = msgspec.to_builtins(after)
    return found

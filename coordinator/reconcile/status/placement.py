"""Writes the placement of a gang in the form of its record."""

from coordinator.record.status import filled, pruned
from coordinator.record.urgency import (
    Status,
)
from kube.codec.placement import placement_to_status
from scheduling.model.placement import Placement
from scheduling.model.queue import DEFAULT_QUEUE
from scheduling.state.bounded_cache import while_alive


def placement_json(placement: Placement, epoch: int, queue: str) -> Status:
    """The placement as the record holds it, with the term that decided it and its queue."""
    named = "" if queue == DEFAULT_QUEUE else queue
    return filled({"epoch": epoch, "queue": named}) | places_json(placement)


@while_alive
def places_json(placement: Placement) -> Status:
    """The same without the epoch; kept, because it seldom changes and may be long."""
    found: Status = pruned(placement_to_status(placement, 0))
    return found

"""Reads the metrics off the state before each scrape, and writes the page.

A read costs the same for ten gangs and for ten thousand, because looks at gangs keep the counts up
to date. GPUs are counted over arrays of all nodes. Another thread writes the page, so that the loop
goes on meanwhile.
"""

import asyncio
import time

from prometheus_client import generate_latest

from coordinator import metrics
from coordinator.queues.status import in_base_units, usage_of
from coordinator.shell.app import Coordinator
from coordinator.state.cycle.device_facts import class_resources, totals_of_devices
from coordinator.state.manager_leases import silences
from coordinator.state_machine import CoordinatorState
from runtime.controller.loop import moment
from scheduling.diagnosis.device_totals.totals import DeviceTotals
from scheduling.diagnosis.holes import SIZES, Pool, pools


async def page(coordinator: Coordinator) -> bytes:
    """Return the metrics as Prometheus reads them."""
    now, state = time.monotonic(), coordinator.loop.state
    _read_watches(coordinator, now)
    _read_gangs(state, now)
    _read_verdicts(state)
    _read_gpus(state)
    _read_shared(state)
    _read_queues(state)
    metrics.MANAGER_SILENCE.read(dict(silences(state.known, moment(now).wall)))
    return await asyncio.to_thread(generate_latest)


def _read_watches(coordinator: Coordinator, now: float) -> None:
    for name, reflector in coordinator.watches.items():
        metrics.SYNCED.labels(name).set(reflector.synced)
        metrics.BLIND.labels(name).set(reflector.blind)
        metrics.RELISTS.labels(name).set(reflector.counters.relists)
        metrics.REOPENED.labels(name).set(reflector.counters.reopened)
        if reflector.last_contact is not None:
            metrics.SILENCE.labels(name).set(now - reflector.last_contact)


def _read_gangs(state: CoordinatorState, now: float) -> None:
    counts = state.known.term.counts
    metrics.AVOIDED.set(state.known.term.refusals.nodes_avoided)
    metrics.BIND_REFUSALS.read({(): state.known.term.refusals.noted})
    metrics.KEPT.set(counts.kept_slots)
    metrics.GANGS.read(dict(counts.gangs.items()))
    metrics.WAITING.read({(reason,): count for reason, count in counts.without_room.items()})
    for reading, meter in (
        (metrics.UNWHOLE_GPU_SECONDS, counts.unwhole),
        (metrics.RESERVED_GPU_SECONDS, counts.awaited),
    ):
        reading.read({(queue,): seconds for queue, seconds in meter.read(now).items()})


def _read_verdicts(state: CoordinatorState) -> None:
    verdicts = state.known.cycles.verdicts
    for reading, counts in (
        (metrics.PLACEMENTS, verdicts.placements),
        (metrics.REFUSALS, verdicts.refusals),
        (metrics.REFUSING_PREDICATES, verdicts.predicates),
    ):
        reading.read({(label,): count for label, count in counts.items()})


def _read_gpus(state: CoordinatorState) -> None:
    """Count GPUs, and devices by class; only the leader knows what is reserved, and so free."""
    known, counted = state.known, dict[tuple[str, str], Pool]()
    if known.term.epoch:
        devices = class_resources(known)
        asked = known.gpu_pools.beside(devices.names)
        found = pools(devices.nodes, {**known.room.devices, **devices.reserved}, asked)
        counted = {(each.name, each.resource): each for each in found}
    metrics.GPUS_ALLOCATABLE.read({at: each.allocatable for at, each in counted.items()})
    metrics.GPUS_RESERVED.read({at: each.reserved for at, each in counted.items()})
    metrics.GPUS_FREE.read({at: each.free for at, each in counted.items()})
    metrics.GPUS_UNSCHEDULABLE.read({at: each.unschedulable for at, each in counted.items()})
    metrics.GPUS_STRANDED.read({at: each.stranded for at, each in counted.items()})
    metrics.HOLES.read(
        {
            (*at, str(size)): count
            for at, each in counted.items()
            for size, count in zip(SIZES, each.holes, strict=True)
        }
    )


def _read_shared(state: CoordinatorState) -> None:
    """Count devices that several nodes reach, each once, and what is left of shared ones."""
    found = totals_of_devices(state.known) if state.known.term.epoch else DeviceTotals()
    far = {(each.name, each.resource): each for each in found.far}
    shared = {(each.name, each.resource): each for each in found.shared}
    metrics.FAR_DEVICES.read({at: each.devices for at, each in far.items()})
    metrics.FAR_RESERVED.read({at: each.reserved for at, each in far.items()})
    metrics.FAR_FREE.read({at: each.free for at, each in far.items()})
    metrics.SHARED_DEVICES.read({at: each.devices for at, each in shared.items()})
    metrics.SHARED_DEVICES_WITH_ROOM.read({at: each.with_room for at, each in shared.items()})
    capacity = {
        (each.name, each.resource, of.name): of for each in found.shared for of in each.capacity
    }
    metrics.SHARED_CAPACITY.read({at: of.whole / 1000 for at, of in capacity.items()})
    metrics.SHARED_CAPACITY_FREE.read({at: of.free / 1000 for at, of in capacity.items()})


def _read_queues(state: CoordinatorState) -> None:
    """Read for the queues with an object their waiting gangs, their usage and their quota."""
    tree, pending = state.known.queues.tree, state.known.reports.census.pending
    usage = usage_of(tree, state.known.quota.held(tree))
    metrics.QUEUE_PENDING.read({(name,): pending[name] for name in state.known.queues.objects})
    stops = state.known.queues.stops
    metrics.QUEUE_STOPPED.read({(name,): int(name in stops) for name in state.known.queues.objects})
    for reading, amounts in (
        (metrics.QUEUE_USAGE, usage.used),
        (metrics.QUEUE_QUOTA, tree.subtree),
    ):
        reading.read(
            {
                (name, resource): in_base_units(resource, amount)
                for name in state.known.queues.objects
                if name in tree.index
                for resource, amount in usage.of(name, amounts).items()
            }
        )

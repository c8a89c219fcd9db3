"""Compares the coordinator's bookkeeping with a recount of everything."""

from collections import Counter, defaultdict
from typing import Any

from coordinator.cluster.cache import _has_constraints
from coordinator.gang.pods.nominating import Nominating
from coordinator.gang.view import GangView
from coordinator.state.cycle.run_cycle import NO_PLACEMENT
from coordinator.state_machine import CoordinatorState
from reservation.slots import echoes, reserved, slots_of
from scheduling.model.gang import GangKey

Ledger = dict[str, dict[str, int]]


def validate(state: CoordinatorState) -> None:
    """Raise where the ledger, the reservations or the indexes differ from a fresh count."""
    _validate_indexes(state)
    for view in state.known.views.values():
        pods = state.known.cache.members(view.key, view.cluster_uid)
        assert view.reservation.reserved == reserved(
            view.reservation.placement or NO_PLACEMENT, pods
        ), view.key
    assert state.known.cache.table._used == ledger(state)
    assert +_holders(state) == +_holders_recounted(state)
    assert state.known.room.plans == _plans_recounted(state)
    columns = state.known.cache.columns()
    for name, at in columns.index.items():
        used = {r: int(columns.used[row, at]) for r, row in columns.row.items()}
        assert {r: n for r, n in used.items() if n} == ledger(state).get(name, {})


def ledger(state: CoordinatorState) -> Ledger:
    """What pods take and placements reserve, by node and resource, counted anew."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    repeated = repeated_nominations(state)
    for pod in state.known.cache.pods.values():
        node = pod.holds if pod.uid in repeated else pod.expected_on
        if node:
            sums[node].update(dict(pod.used))
    for view in state.known.views.values():
        for (node, requests), count in view.reservation.reserved.room.items():
            sums[node].update({name: each * count for name, each in requests})
    return {
        node: kept
        for node, amounts in sums.items()
        if (kept := {name: n for name, n in amounts.items() if n})
    }


def repeated_nominations(state: CoordinatorState) -> set[str]:
    """The uids of pods whose nomination says no more than the placement or plan of its gang."""
    found: set[str] = set()
    for view in state.known.views.values():
        pods = state.known.cache.members(view.key, view.cluster_uid)
        slots = view.reservation.reserved.slots + slots_of(view.queueing.planned or NO_PLACEMENT)
        found |= echoes(slots, pods, view.pod_writes.targets).keys()
    return found


def _validate_indexes(state: CoordinatorState) -> None:
    cache = state.known.cache
    members: defaultdict[GangKey, dict[str, Any]] = defaultdict(dict)
    for key, pod in cache.pods.items():
        assert key == pod.key
        if pod.member is not None:
            members[pod.member.gang][pod.uid] = pod
    assert dict(cache._members) == dict(members)
    assert cache._constrained == {pod.uid for pod in cache.pods.values() if _has_constraints(pod)}


def _holders(state: CoordinatorState) -> Counter[tuple[str, GangKey]]:
    return Counter((node, key) for node, keys in state.known.room.holders.items() for key in keys)


def _holders_recounted(state: CoordinatorState) -> Counter[tuple[str, GangKey]]:
    return Counter(
        {
            (node, view.key): 1
            for view in state.known.views.values()
            for node, _ in view.reservation.reserved.room
        }
    )


def _plans_recounted(state: CoordinatorState) -> dict[GangKey, Nominating]:
    states = {view.key: view.nominating for view in state.known.views.values()}
    return {key: each for key, each in states.items() if any(each.planned_to)}


def essence(state: CoordinatorState) -> dict[str, object]:
    """What of a state the next leader must come to know too, however it came about."""
    return {
        "used": ledger(state),
        "gangs": {str(view.key): _essence(view) for view in state.known.views.values()},
    }


def _essence(view: GangView) -> object:
    standing = [
        (
            each.terms,
            [pod.name for pod in each.settled],
            [(pod.name, node) for pod, node in each.with_slot],
            [pod.name for pod in each.waiting],
            [pod.name for pod in each.blocked],
        )
        for each in view.survey.standing
    ]
    return (
        view.reservation.placement,
        view.understood.problem,
        view.understood.priority,
        standing,
        view.queueing.asked,
        view.record.written,
    )

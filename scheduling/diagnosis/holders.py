"""Adds to a refusal the holders of the resource that is short, the largest shares first."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from scheduling.diagnosis.amount_texts import amount_down
from scheduling.diagnosis.partial_fit import Wanted
from scheduling.diagnosis.shortfall import wanted_pods
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import is_device
from scheduling.model.gang import Group
from scheduling.model.holder import Held
from scheduling.model.shape.host_ports import is_port
from scheduling.model.verdict import MESSAGE_LIMIT, PodSetRefusal, Reason, Refusal
from scheduling.state.holder_index import Holders

MOST_HOLDERS = 3
"""How many holders of a resource are named."""


def with_holders(
    refusal: Refusal, groups: Iterable[Group], room: FreeCapacity, holders: Holders
) -> Refusal:
    """Add the holders of what is short, with the largest shares, as far as the limit allows."""
    if refusal.reason is not Reason.INSUFFICIENT_RESOURCES:
        return refusal
    wanted = wanted_pods(groups)
    short = [each for each in refusal.pod_sets if each.fit < each.wanted] or refusal.pod_sets
    numbers = tuple(
        replace(each, held=_held(each, wanted, room, holders)) if each in short else each
        for each in refusal.pod_sets
    )
    said = [refusal.message, *_first_of_devices(numbers)]
    message = ". ".join(said)
    return replace(
        refusal,
        message=message if len(message) <= MESSAGE_LIMIT else refusal.message,
        pod_sets=numbers,
    )


def _held(
    each: PodSetRefusal, wanted: Sequence[Wanted], room: FreeCapacity, holders: Holders
) -> Held | None:
    """Return the holders of what is short; None where no node has it, or it is a host port.

    The shapes that were judged also ask for what their volumes take.
    """
    asked = set(each.requests)
    mine = (
        s for pod_set, s, _ in wanted if pod_set == each.pod_set and asked.issuperset(s.requests)
    )
    shape = next(mine, None)
    if shape is None or each.resource not in dict(shape.requests) or is_port(each.resource):
        return None
    if each.resource not in room.columns.row:
        return None
    return room.remembered(
        ("held", each.resource, shape.scheduling_key),
        lambda: holders.of(
            each.resource, feasible(shape, room.columns), room.columns, MOST_HOLDERS
        ),
    )


def _first_of_devices(numbers: Iterable[PodSetRefusal]) -> list[str]:
    """Name the holders of one of the short resources: of a device where one is short."""
    told = [(each.resource, each.held) for each in numbers if each.held and each.held.shares]
    told.sort(key=lambda pair: not is_device(pair[0]))
    return [_holders_said(*pair) for pair in told[:1]]


def _holders_said(resource: str, held: Held) -> str:
    first, *others = held.shares
    amount, total = (amount_down(resource, n) for n in (first.amount, held.total))
    verb = "is" if amount == "1" else "are"
    said = [f"{amount} of {total} {resource} {verb} held by {first.holder}"]
    said += [f"{amount_down(resource, share.amount)} by {share.holder}" for share in others]
    if held.others:
        plural = "" if held.others == 1 else "s"
        said.append(f"{amount_down(resource, held.rest)} by {held.others} other{plural}")
    return ", ".join(said)

"""Judges a gang by the status of its queue alone, for callers that may not read nodes and pods.

What queues hold, and the holes on their nodes, are read off it. Whether there is room stays open,
so that the answer is no, or not known.
"""

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from cli.fitting.holes_alone import refusals, remark
from cli.fitting.unseen_parents import UnseenQueue
from cli.report.fit import Fits, Verdict
from coordinator.queues.registry import QueueRegistry
from kube.codec.fields import InvalidObject, read_amounts
from scheduling.diagnosis.quota_refusals import over_quota
from scheduling.model.amounts import Amounts
from scheduling.model.gang import PendingGang
from scheduling.model.verdict import Reason
from scheduling.queueing.line import requests_of
from scheduling.queueing.quota_tree import QuotaTree


def by_queue_alone(found: Verdict, asked: PendingGang, queues: QueueRegistry) -> Verdict:
    """Return a verdict on quota and holes; `found` has the queue."""
    short = next(refusals(asked, queues.objects.get(asked.queue)), "")
    if not is_within_quota(asked, queues):
        return _over_quota(found, asked, queues)
    if short:
        return replace(
            found,
            fits=Fits.NO,
            reason=Reason.INSUFFICIENT_RESOURCES,
            message=short,
            count_matters=True,
        )
    room = remark(asked, queues.objects.get(asked.queue)) or _NO_HOLES
    said = f"queue {asked.queue} has {_quota(asked, queues)}; {room}"
    return replace(found, fits=Fits.UNKNOWN, reason="", message=said)


_NO_HOLES = "whether there is room on the nodes is not judged"


def _quota(asked: PendingGang, queues: QueueRegistry) -> str:
    above = queues.objects.get(queues.queue(asked.queue).parent)
    limited = queues.has_quota(asked.queue)
    if not isinstance(above, UnseenQueue):
        return "quota for it" if limited else "no quota"
    unseen = f"queue {above.metadata.name} above it, from which it may borrow, may not be read"
    if not limited:
        return f"no quota of its own; {unseen}"
    has = "quota of its own for it" if _is_own(asked, queues) else "too little quota of its own"
    return f"{has}; {unseen}"


def _is_own(asked: PendingGang, queues: QueueRegistry) -> bool:
    """Say whether a gang fits in what its queue has left of its own quota."""
    needs, used = requests_of(asked.minimum), _usage(queues, asked.queue)
    quota = queues.queue(asked.queue).quota
    return all(needs.get(each, 0) <= has - used.get(each, 0) for each, has in quota.items())


def _over_quota(found: Verdict, asked: PendingGang, queues: QueueRegistry) -> Verdict:
    tree = queues.tree
    at, demand = tree.index[asked.queue], tree.requests(requests_of(asked.minimum))
    used = _used(tree, queues)
    refusal = over_quota(tree, asked.queue, demand, used[at], tree.available(used)[at])
    return replace(
        found, fits=Fits.NO, reason=refusal.reason, message=refusal.message, count_matters=True
    )


def may_fit(asked: PendingGang, queues: QueueRegistry) -> bool:
    """Say whether neither quota nor holes are against a gang."""
    short = any(refusals(asked, queues.objects.get(asked.queue)))
    return is_within_quota(asked, queues) and not short


def is_within_quota(asked: PendingGang, queues: QueueRegistry) -> bool:
    """Say whether the queue may take what the minimum of a gang asks for."""
    tree = queues.tree
    at, demand = tree.index[asked.queue], tree.requests(requests_of(asked.minimum))
    available = tree.available(_used(tree, queues))[at]
    return not (tree.limited[at] & (demand > available)).any()


def _used(tree: QuotaTree, queues: QueueRegistry) -> Amounts:
    """Return what the queues use (queues x resources), as their status says it."""
    rows = [tree.requests(_usage(queues, name)) for name in tree.names]
    return np.array(rows, dtype=np.int64).reshape(len(tree.names), len(tree.resources))


def _usage(queues: QueueRegistry, name: str) -> Mapping[str, int]:
    found = queues.objects.get(name)
    try:
        return read_amounts(found.status.usage, "status.usage") if found is not None else {}
    except InvalidObject:
        return {}

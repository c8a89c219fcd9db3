"""Reads the quota of all queues and what they use of it, from what the coordinator wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from kube.codec.fields import InvalidObject, read_amounts
from kube.codec.queues.queue import read_queue
from kube.objects.queues.queue import GangQueue
from scheduling.model.amounts import Amounts
from scheduling.model.queue import Queue
from scheduling.queueing.faults import faults
from scheduling.queueing.quota_tree import QuotaTree


def usage_of(queues: Iterable[GangQueue]) -> tuple[QuotaTree, Amounts] | None:
    """Return the active queues and what each uses (queues x resources); None where none is."""
    readable = dict(_readable(queues))
    broken = faults({name: rules for name, (rules, _) in readable.items()})
    tree = QuotaTree(rules for name, (rules, _) in readable.items() if name not in broken)
    if not tree.queues:
        return None
    return tree, np.stack([tree.requests(readable[name][1]) for name in tree.names])


def _readable(queues: Iterable[GangQueue]) -> Iterator[tuple[str, tuple[Queue, dict[str, int]]]]:
    """Yield the rules and the usage of the queues that can be read."""
    for each in queues:
        try:
            usage = read_amounts(each.status.usage, "status.usage")
            yield each.metadata.name, (read_queue(each), usage)
        except (InvalidObject, ValueError):
            continue

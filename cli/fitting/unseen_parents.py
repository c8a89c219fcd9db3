"""Stands in for parent queues that may not be read; what they lend is unknown."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kube.objects.queues.queue import GangQueue, GangQueueSpec, QueueMeta

AMPLE = 10**15
"""Of each resource: what is refused all the same, the queue's own borrowingLimit refuses."""


class UnseenQueue(GangQueue, frozen=True):
    """A queue that another names as its parent and that may not be read."""


def with_unseen_parents(queues: Iterable[GangQueue]) -> Iterator[GangQueue]:
    """Yield queues that were read by name, each with a parent that lends whatever is asked for."""
    seen = {each.metadata.name: each for each in queues}
    yield from seen.values()
    unseen: dict[str, UnseenQueue] = {}
    for each in seen.values():
        if each.spec.parent and each.spec.parent not in seen:
            name = each.spec.parent
            before = unseen.get(name, UnseenQueue(QueueMeta(name=name), GangQueueSpec(quota={})))
            quota = {**(before.spec.quota or {}), **dict.fromkeys(each.spec.quota or {}, AMPLE)}
            unseen[name] = replace(before, spec=replace(before.spec, quota=quota))
    yield from unseen.values()

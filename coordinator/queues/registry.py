"""Keeps the GangQueues that were seen, and the tree of those that work."""

from collections.abc import Mapping
from types import MappingProxyType

from kube.codec.fields import InvalidObject
from kube.codec.queue import read_queue
from kube.objects.queue import GangQueue
from scheduling.model.queue import DEFAULT_QUEUE, Queue
from scheduling.queueing.faults import faults
from scheduling.queueing.quota_tree import QuotaTree

BUILT_IN = Queue(DEFAULT_QUEUE)
"""What the queue `default` is while there is no GangQueue of that name."""

ENDING = "the GangQueue is being deleted: it goes once none of its gangs holds anything"


class QueueRegistry:
    """All GangQueues by name. Every change makes new values of what is derived from them.

    `rules` are the queues that a gang can name. `faults` says of those that are not active why:
    their gangs wait. `tree` has the active ones, always with the default queue.
    """

    def __init__(self) -> None:
        self.objects: dict[str, GangQueue] = {}
        self.rules: Mapping[str, Queue] = MappingProxyType({})
        self.faults: Mapping[str, str] = MappingProxyType({})
        self.tree = QuotaTree([BUILT_IN])

    def put(self, found: GangQueue) -> bool:
        """Take in a GangQueue; say whether that changes any rule."""
        before = self.objects.get(found.metadata.name)
        self.objects[found.metadata.name] = found
        if before is not None and _rules_of(before) == _rules_of(found):
            return False
        self._derive()
        return True

    def drop(self, name: str) -> bool:
        """Forget a GangQueue; say whether there was one."""
        if self.objects.pop(name, None) is None:
            return False
        self._derive()
        return True

    def queue(self, name: str) -> Queue:
        """Return the rules of a queue that gangs wait in."""
        return self.rules.get(name, BUILT_IN)

    def _derive(self) -> None:
        rules, unreadable = {}, {}
        for name, found in sorted(self.objects.items()):
            try:
                rules[name] = read_queue(found)
            except InvalidObject as error:
                rules[name], unreadable[name] = Queue(name, found.spec.parent), str(error)
        broken = faults(rules, unreadable)
        ending = {name: ENDING for name, found in self.objects.items() if _is_ending(found)}
        self.rules = MappingProxyType(rules)
        self.faults = MappingProxyType({**ending, **broken})
        working = {name: queue for name, queue in rules.items() if name not in broken}
        self.tree = QuotaTree({DEFAULT_QUEUE: BUILT_IN, **working}.values())


def _is_ending(found: GangQueue) -> bool:
    return found.metadata.deletion_timestamp is not None


def _rules_of(found: GangQueue) -> tuple[object, ...]:
    return found.spec, _is_ending(found)

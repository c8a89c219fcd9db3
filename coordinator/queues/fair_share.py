"""Keeps the usage of queues with fair sharing, and of their namespaces, for cycles and statuses.

The usage lives as long as a term. The next leader goes on with the usage in the queue's status, and
takes what gangs hold at its first look as held ever since. So a crash loses the usage of gangs that
ended after the last write.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

import msgspec

from coordinator.queues.queue_usage import QuotaLedger
from coordinator.queues.registry import QueueRegistry
from coordinator.record.status import pruned
from kube.codec.queues.fair_share import read_usage, written_share, written_usage
from runtime.controller.moment import Moment
from scheduling.model.queue import Queue
from scheduling.queueing.average_usage import QueueUsage
from scheduling.queueing.fair_shares import FairShares

INTERVAL = 300.0
"""Seconds after which the averages of a queue are worked out anew, and its status with them."""

SETTLED_AT_ONCE = 5
"""So many queues are brought up to date at one moment."""

FAULT_TOLD = 24 * 3600.0
"""Seconds for which a queue says that its recorded usage could not be read."""

Status = Mapping[str, Any]


class Told(NamedTuple):
    """What a status says of the usage of its queue, and what could not be read of it before."""

    status: Status | None = None
    fault: str = ""


NOTHING = Told()


@dataclass(slots=True)
class _Kept:
    """One queue: its usage, when all of that was settled, and what its status says of it.

    `is_news` says that something else was held since that was worked out.
    """

    usage: QueueUsage
    settled_at: float
    told: Told
    is_news: bool
    fault_until: float = 0.0

    @property
    def due_at(self) -> float:
        """When it is to be settled again; never where nothing was used and all of that is told."""
        is_idle = not (self.is_news or self.told.fault or self.usage.is_in_use)
        return inf if is_idle else self.settled_at + INTERVAL


class FairShareLedger:
    """The usage of all queues with fair sharing, on a clock that is never set."""

    def __init__(self) -> None:
        self.shares: FairShares | None = None
        self._kept: dict[str, _Kept] = {}
        self._usages: dict[str, QueueUsage] = {}
        self._rules: Mapping[str, Queue] | None = None
        self._next_at = inf

    def forget_term(self) -> None:
        """Drop all: other leaders go on with it."""
        self.__init__()  # type: ignore[misc]

    def settle(
        self,
        registry: QueueRegistry,
        quota: QuotaLedger,
        cluster: Callable[[], Mapping[str, int]],
        moment: Moment,
    ) -> list[str]:
        """Bring usage up to a moment; return the queues whose status is to tell of it.

        `cluster` says what all nodes have of each resource.
        """
        if self._rules is not registry.rules:
            self._follow(registry, quota, moment)
        moved, quota.moved = quota.moved, set()
        for queue, namespace in moved:
            if queue in self._kept:
                held: Mapping[str, int] = quota.namespaces[queue].get(namespace, {})
                self._kept[queue].usage.hold(namespace, held, moment.now)
                self._kept[queue].is_news = True
                self._next_at = min(self._next_at, self._kept[queue].due_at)
        self._see(registry, cluster() if self._kept else {})
        return list(self._settle_due(moment))

    def told(self, name: str) -> Told:
        """Return what the status of a queue says of usage; nothing without fair sharing."""
        found = self._kept.get(name)
        return NOTHING if found is None else found.told

    def renewed(self, name: str, moment: Moment) -> Told:
        """Return the same as of this moment."""
        found = self._kept.get(name)
        if found is None:
            return NOTHING
        found.usage.settle(moment.now)
        found.settled_at = moment.now
        if name not in self._usages:
            return found.told
        found.is_news = False
        fault = found.told.fault if moment.now < found.fault_until else ""
        found.told = Told(self._status(name, found.usage, moment.stamp), fault)
        return found.told

    @property
    def next_at(self) -> float | None:
        """Return when averages are due; None where nothing was used."""
        return self._next_at if self._next_at < inf else None

    def _follow(self, registry: QueueRegistry, quota: QuotaLedger, moment: Moment) -> None:
        """Keep usage of the queues that have fair sharing now, and of no others.

        Where its rules cannot be read usage is kept, and does not count.
        """
        self._rules = registry.rules
        fair = {name: rule.fair for name, rule in registry.rules.items() if rule.fair is not None}
        for name in self._kept.keys() - fair.keys():
            self._usages.pop(name, None)
            found = registry.objects.get(name)
            if found is None or found.spec.fair_sharing is None:
                del self._kept[name]
        for name, rules in fair.items():
            if name not in self._kept:
                self._begin(name, registry, quota, moment)
                continue
            self._usages[name] = self._kept[name].usage
            if self._kept[name].usage.rules != rules:
                self._kept[name].usage.follow(rules, moment.now)
                self._kept[name].is_news = True
                self._next_at = moment.now

    def _begin(
        self, name: str, registry: QueueRegistry, quota: QuotaLedger, moment: Moment
    ) -> None:
        """Go on with what the status of a queue says, as if all had been held since that is."""
        rules = registry.rules[name].fair
        assert rules is not None
        recorded = read_usage(registry.objects[name].status.fair_share)
        since = moment.now
        if recorded.at is not None:
            since -= max(0.0, moment.wall - recorded.at)
        usage = self._usages[name] = QueueUsage(rules, since)
        usage.begin_with(recorded.namespaces, recorded.rest, since)
        for namespace, held in quota.namespaces[name].items():
            usage.hold(namespace, held, since)
        usage.settle(moment.now)
        found = registry.objects[name].status.fair_share
        told = Told(None if found is None else pruned(msgspec.to_builtins(found)), recorded.fault)
        is_news = found is None or bool(recorded.fault)
        until = moment.now + FAULT_TOLD if recorded.fault else 0.0
        self._kept[name] = _Kept(usage, moment.now - INTERVAL, told, is_news, until)
        self._next_at = moment.now

    def _see(self, registry: QueueRegistry, cluster: Mapping[str, int]) -> None:
        """Bring the shares up to date with the tree and the cluster."""
        before, tree = self.shares, registry.tree
        if not self._kept:
            self.shares = None
        elif before is None or before.tree is not tree or before.cluster != cluster:
            self.shares = FairShares(self._usages, tree, cluster)

    def _settle_due(self, moment: Moment) -> Iterator[str]:
        """Settle the queues that are due, a few at a time; yield those with something to tell."""
        if self._next_at > moment.now:
            return
        due = [each for each in self._kept.items() if each[1].due_at <= moment.now]
        first = sorted(due, key=lambda each: (each[1].settled_at, each[0]))[:SETTLED_AT_ONCE]
        for name, kept in first:
            before, is_news = kept.told, kept.is_news
            now = self.renewed(name, moment)
            if is_news or _shown(now) != _shown(before):
                yield name
            else:
                kept.told = before
        self._next_at = min((each.due_at for each in self._kept.values()), default=inf)

    def _status(self, name: str, usage: QueueUsage, stamp: str) -> Status:
        shares = self.shares
        assert shares is not None
        share_of = {each: shares.of_namespace(name, each) for each in usage.namespaces}
        order = sorted(share_of, key=lambda each: (-share_of[each], each))
        found: Status = pruned(
            {
                "at": stamp,
                "share": written_share(shares.of_quota(name)),
                "namespaces": [
                    {
                        "name": each,
                        "share": written_share(share_of[each]),
                        "usage": written_usage(usage.namespaces[each].average),
                    }
                    for each in order
                ],
                "rest": written_usage(usage.rest.average),
            }
        )
        return found


def _shown(told: Told) -> object:
    """Return what people see of it: shares, without the amounts that change all the time."""
    status = told.status or {}
    shares = [(each["name"], each.get("share")) for each in status.get("namespaces", ())]
    return status.get("share"), shares, told.fault

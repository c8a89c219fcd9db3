"""Fair share of a thousand queues: the rate of writes, and no work where nothing changed."""

from typing import Any

import msgspec

from coordinator.queues.fair_share import INTERVAL, SETTLED_AT_ONCE, FairShareLedger
from coordinator.queues.queue_usage import QuotaLedger
from coordinator.queues.registry import QueueRegistry
from kube.objects.queues.queue import GangQueue
from reservation.slots import Reserved
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey

QUEUES = 1000
CLUSTER = {"cpu": 10_000_000}


def moment(at: float) -> Moment:
    return Moment(at, "2026-01-01T00:00:00Z", 1e9 + at)


def registry() -> QueueRegistry:
    found = QueueRegistry()
    for at in range(QUEUES):
        spec = {"quota": {"cpu": "8"}, "fairSharing": {}}
        found.put(msgspec.convert({"metadata": {"name": f"q{at}"}, "spec": spec}, GangQueue))
    return found


class Thousand:
    """A thousand queues, each with a gang that runs."""

    def __init__(self) -> None:
        self.registry, self.quota, self.ledger = registry(), QuotaLedger(), FairShareLedger()
        for at in range(QUEUES):
            self.hold(at, 4)

    def hold(self, at: int, pods: int) -> None:
        room = {("n", (("cpu", 1000),)): pods} if pods else {}
        self.quota.note(GangKey("team", f"g{at}"), "u", f"q{at}", [], reserved(room))

    def settle(self, at: float) -> list[str]:
        return self.ledger.settle(self.registry, self.quota, lambda: CLUSTER, moment(at))


def reserved(room: Any) -> Reserved:
    found = Reserved()
    found.room.update(room)
    return found


def test_a_thousand_queues_are_settled_some_at_a_time() -> None:
    world = Thousand()
    told = [world.settle(float(at)) for at in range(QUEUES // SETTLED_AT_ONCE)]
    assert {len(each) for each in told} == {SETTLED_AT_ONCE}
    assert len({name for each in told for name in each}) == QUEUES
    assert world.settle(100.0) == [], "each was told once"
    assert world.ledger.next_at == INTERVAL


def test_where_nothing_changed_no_queue_is_written_but_for_shares_that_moved() -> None:
    world, at = Thousand(), QUEUES // SETTLED_AT_ONCE + 10
    for each in range(at):
        world.settle(float(each))
    shares = world.ledger.shares
    assert shares is not None
    written = sum(len(world.settle(at + each)) for each in range(int(2 * INTERVAL)))
    assert written <= 2 * QUEUES
    world.hold(7, 0)
    world.settle(2000.0)
    usage = shares.usages["q7"]
    assert usage.moved, "one namespace of one queue is looked at"
    assert not any(shares.usages[f"q{other}"].moved for other in range(20) if other != 7)

"""Orders the waiting gangs of a fair-sharing queue by priority, then by usage of their namespace.

Each gang has the share that its namespace would have used when it is its turn: what those of its
namespace before it ask for counts as held. So namespaces take turns, and the order stands for a
cycle. Gangs that have waited too long come before all others of their priority, as they arrived.
"""

from collections.abc import Set
from math import inf

from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.queue import Ordering, Queue
from scheduling.queueing.average_usage import Held
from scheduling.queueing.fair_shares import FairShares
from scheduling.queueing.line import Line, Place, place_of, requests_of


def line_of(queue: Queue) -> Line:
    """Return the line of a queue, in which no gang waits yet."""
    is_fair = queue.fair is not None and queue.ordering is Ordering.PRIORITY
    return FairLine(queue) if is_fair else Line(queue)


class FairLine(Line):
    """A line that is arranged before each cycle; only namespaces that changed are looked at."""

    def __init__(self, queue: Queue) -> None:
        super().__init__(queue)
        self._shares: dict[GangKey, float] = {}
        self._asked: dict[GangKey, Held] = {}
        self._to_sort: set[str] = set()
        self._seen: tuple[FairShares | None, int] = None, -1

    def place(self, gang: PendingGang) -> Place:
        """Return what orders a gang among those of the line."""
        return place_of(gang, self.queue.ordering, self._shares.get(gang.key, inf))

    def put(self, gang: PendingGang, row: int) -> None:
        """Let a gang wait, at the end of its priority until the line is arranged."""
        super().put(gang, row)
        self._asked[gang.key] = requests_of(gang.minimum)
        self.sort_again(gang.key.namespace)

    def drop(self, gang: PendingGang) -> int:
        """Take a gang out; return its row."""
        row = super().drop(gang)
        self._asked.pop(gang.key)
        self._shares.pop(gang.key, None)
        self.sort_again(gang.key.namespace)
        return row

    def sort_again(self, namespace: str) -> None:
        """Have the gangs of a namespace looked at when the line is arranged."""
        self._to_sort.add(namespace)

    def arrange(self, shares: FairShares, overdue: Set[GangKey]) -> bool:
        """Order the gangs; say whether the order is another one."""
        usage = shares.usages.get(self.queue.name)
        if usage is None:
            return False
        before, version = self._seen
        is_all = before is not shares or usage.all_moved > version
        named, self._to_sort = self._to_sort.union(usage.moved_since(version)), set()
        self._seen = shares, usage.version
        if not self.gangs or not (is_all or named):
            return False
        some = [each for each in self.gangs if is_all or each.key.namespace in named]
        some.sort(key=lambda gang: place_of(gang, self.queue.ordering))
        asked = ((each, self._asked[each.key]) for each in some)
        found = shares.starts(self.queue.name, asked, overdue)
        self._shares.update(found)
        return self._sort(found.keys())

    def _sort(self, moved: Set[GangKey]) -> bool:
        places = [
            self.place(gang) if gang.key in moved else place
            for gang, place in zip(self.gangs, self.places, strict=True)
        ]
        order = sorted(range(len(places)), key=places.__getitem__)
        self.places = [places[at] for at in order]
        if order == list(range(len(order))):
            return False
        self.reorder(order)
        return True

"""Tracks one gang's writes of nominatedNodeName, and the node where each pod belongs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from coordinator.gang.attempts import Attempts
from coordinator.gang.pods.pod_writes import forget

MOST_IN_FLIGHT = 32
"""Nominations of one gang under way at one time; of a large gang more."""


PARTS = 8
"""The pods of a large gang are nominated in so many parts, and in twice as many looks at all of
them: a fixed number of pods at a time would take the more looks, the larger the gang is."""


NOWHERE = frozenset[str]()
"""No nodes."""


LONGEST_ASTRAY = 5.0
"""Seconds for which releases wait for the end of nominations that take their room."""


FIRST_MOVE_PAUSE = 1.0


LONGEST_MOVE_PAUSE = 15.0


CALM = 30.0
"""Seconds after which the earlier moves of a plan are forgotten."""


@dataclass(slots=True)
class PlanMoves:
    """The moves of a plan to other nodes.

    A move costs two writes for each of its pods. So a plan that moves again and again is followed
    ever more seldom; what it leaves is taken back at once.
    """

    places: Counter[str] = field(default_factory=Counter)
    """How many of its pods the plan has on each node."""
    count: int = 0
    moved_at: float = float("-inf")

    @property
    def until(self) -> float:
        """Until then its pods are not nominated where it moved to."""
        pause = FIRST_MOVE_PAUSE * 2.0 ** min(self.count - 1, 16)
        return self.moved_at + min(LONGEST_MOVE_PAUSE, pause)

    def follow(self, places: Iterable[str], now: float) -> bool:
        """Note the node of each pod of the plan; say whether pods may be nominated there now."""
        before, self.places = self.places, Counter(places)
        if before - self.places:
            self.count = 1 if now >= self.moved_at + CALM else self.count + 1
            self.moved_at = now
        return now >= self.until


@dataclass(slots=True)
class Nominating:
    """The writes of nominations, by uid of the pod.

    Written by `reconcile.pod_writes.nominations` and `state.intake`.
    """

    held_up_since: float | None = None
    """Since when none of the gang was released."""
    released: int = 0
    """How many of its pods are, since `held_up_since`."""
    in_line: bool = False
    """Whether it waits for its turn to be released, since `held_up_since`."""
    inflight: dict[str, str] = field(default_factory=dict)
    """The node of each write that is under way, empty where it ends a nomination."""
    taking_back: set[str] = field(default_factory=set)
    """Those that end one."""
    most: int = MOST_IN_FLIGHT
    """So many may be under way that nominate, and as many that end a nomination."""
    tries: dict[str, Attempts] = field(default_factory=dict)
    """All that were asked for, with the time before which a pod is not written again."""
    aims: dict[str, str] = field(default_factory=dict)
    """The node where a pod belongs, empty for none."""
    crowded: bool = False
    """Others wait for the end of those that are under way."""
    next_at: float | None = None
    """When time alone has something to be written."""
    misnominated: dict[str, float] = field(default_factory=dict)
    """The nodes to which pods are nominated that should not be: until then nothing is released
    there."""
    planned_to: frozenset[str] = NOWHERE
    """The nodes to which pods are nominated for a plan."""
    withheld: frozenset[str] = NOWHERE
    """The nodes of the plan to which they are not, for gangs reserve room there."""
    moves: PlanMoves = field(default_factory=PlanMoves)

    def aim(self, uid: str, node: str) -> None:
        """Note where a pod belongs; where that changes, no write waits for what failed before."""
        if self.aims.get(uid) != node:
            self.aims[uid] = node
            self.tries.pop(uid, None)

    def ask(self, uid: str, node: str, now: float) -> None:
        """Note a write; where others undo it, the next one waits twice as long."""
        self.tries.setdefault(uid, Attempts()).failed(now, "")
        self.inflight[uid] = node
        if not node:
            self.taking_back.add(uid)

    def for_plan(self, planned_to: frozenset[str], withheld: frozenset[str]) -> None:
        """Note which nodes of a plan pods are nominated to, and which they are not."""
        self.planned_to, self.withheld = planned_to, withheld

    def mark_misnominated(self, nodes: frozenset[str], now: float) -> None:
        """Note the nodes to which pods are nominated that should not be."""
        self.misnominated = {
            node: self.misnominated.get(node, now + LONGEST_ASTRAY) for node in nodes
        }
        for until in (each for each in self.misnominated.values() if each > now):
            self.due_by(until)

    def blocked_nodes_at(self, now: float) -> frozenset[str]:
        """Return the nodes on which nothing is released for it now."""
        return frozenset(node for node, until in self.misnominated.items() if now < until)

    def due_by(self, at: float) -> None:
        """Note a moment at which something may be written."""
        self.next_at = at if self.next_at is None else min(self.next_at, at)

    def begin_writes(self, pods: int) -> None:
        """Begin to write to pods of a gang, of which there are so many."""
        self.most = max(MOST_IN_FLIGHT, pods // PARTS)
        self.crowded = False

    def may_write(self, uid: str, node: str, now: float) -> bool:
        """Whether there is room for a write, and its time has come; else it is noted when it has.

        No gang crowds out the writes of others. Nominations, which let others pass, hold up none
        that end one.
        """
        tried = self.tries.get(uid)
        if tried is not None and tried.not_before > now:
            self.due_by(tried.not_before)
            return False
        ending = len(self.taking_back)
        full = (len(self.inflight) - ending if node else ending) >= self.most
        self.crowded |= full
        return not full

    def ended(self, uid: str) -> bool:
        """Note the end of a write; say whether something may wait for it."""
        last_taken_back = self.taking_back == {uid}
        self.inflight.pop(uid, None)
        self.taking_back.discard(uid)
        few = len(self.inflight) <= self.most // 2
        return last_taken_back or not self.inflight or (self.crowded and few)

    def forget_pods(self, alive: set[str]) -> None:
        """Drop what is known of pods that are gone."""
        forget(alive, self.tries, self.aims, self.inflight)
        self.taking_back &= alive

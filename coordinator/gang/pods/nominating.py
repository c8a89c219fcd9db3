"""Tracks one gang's writes of nominatedNodeName, and the node where each pod belongs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator.gang.attempts import Attempts
from coordinator.gang.pods.pod_writes import forget

MOST_IN_FLIGHT = 32
"""Nominations of one gang under way at one time; of a large gang more."""


PARTS = 8
"""The pods of a large gang are nominated in so many parts, and in twice as many looks at all of
them: a fixed number of pods at a time would take the more looks, the larger the gang is."""


LONGEST_ASTRAY = 5.0
"""Seconds for which releases wait for the end of nominations that take their room."""


FIRST_MOVE_PAUSE = 1.0


LONGEST_MOVE_PAUSE = 15.0


CALM = 30.0
"""Seconds after which the earlier moves of a plan are forgotten."""


class PlannedTo(NamedTuple):
    """The nodes of a plan: those to which pods are nominated for it, and the others.

    They are `withheld` where gangs reserve room.
    """

    nominated: frozenset[str] = frozenset()
    withheld: frozenset[str] = frozenset()


NOWHERE = PlannedTo()
"""The nodes of no plan."""


class HeldUp(NamedTuple):
    """Since when none of a gang was released, and what it depends on how long that may last."""

    since: float
    released: int
    """How many of its pods are."""
    in_line: bool
    """Whether it waits for its turn to be released."""


@dataclass(frozen=True, slots=True)
class Aim:
    """The node where a pod belongs, empty for none, and the writes that were asked for so far."""

    node: str
    tries: Attempts = field(default_factory=Attempts)


@dataclass(frozen=True, slots=True)
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

    def followed(self, places: Iterable[str], now: float) -> "PlanMoves":
        """Take in the node of each pod of the plan."""
        counted = Counter(places)
        if not self.places - counted:
            return PlanMoves(counted, self.count, self.moved_at)
        count = 1 if now >= self.moved_at + CALM else self.count + 1
        return PlanMoves(counted, count, now)


@dataclass(slots=True)
class Nominating:
    """The writes of nominations, by uid of the pod.

    Written by `reconcile.pod_writes.nominations` and `state.intake`.
    """

    held_up: HeldUp | None = None
    inflight: dict[str, str] = field(default_factory=dict)
    """The node of each write that is under way, empty where it ends a nomination."""
    taking_back: set[str] = field(default_factory=set)
    """Those that end one."""
    resumes_at: int = 0
    """Others wait until so few are under way."""
    aims: dict[str, Aim] = field(default_factory=dict)
    next_at: float | None = None
    """When time alone has something to be written."""
    misnominated: dict[str, float] = field(default_factory=dict)
    """The nodes to which pods are nominated that should not be: until then nothing is released
    there."""
    planned_to: PlannedTo = NOWHERE
    moves: PlanMoves = field(default_factory=PlanMoves)

    def aim(self, uid: str, node: str) -> None:
        """Note where a pod belongs; where that changes, no write waits for what failed before."""
        if uid not in self.aims or self.aims[uid].node != node:
            self.aims[uid] = Aim(node)

    def was_tried(self, uid: str) -> bool:
        """Whether a write to a pod was asked for, for the node where it belongs."""
        return uid in self.aims and self.aims[uid].tries.failures > 0

    def ask(self, uid: str, node: str, now: float) -> None:
        """Note a write; where others undo it, the next one waits twice as long."""
        self.aims.setdefault(uid, Aim(node)).tries.failed(now, "")
        self.inflight[uid] = node
        if not node:
            self.taking_back.add(uid)

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

    def may_write(self, uid: str, node: str, most: int, now: float) -> bool:
        """Whether there is room for a write, and its time has come; else it is noted when it has.

        No gang crowds out the writes of others: `most` may be under way that nominate, and as many
        that end a nomination. Nominations, which let others pass, hold up none that end one.
        """
        if uid in self.aims and self.aims[uid].tries.not_before > now:
            self.due_by(self.aims[uid].tries.not_before)
            return False
        ending = len(self.taking_back)
        full = (len(self.inflight) - ending if node else ending) >= most
        if full:
            self.resumes_at = most // 2
        return not full

    def ended(self, uid: str) -> bool:
        """Note the end of a write; say whether something may wait for it."""
        last_taken_back = self.taking_back == {uid}
        self.inflight.pop(uid, None)
        self.taking_back.discard(uid)
        return last_taken_back or len(self.inflight) <= self.resumes_at

    def forget_pods(self, alive: set[str]) -> None:
        """Drop what is known of pods that are gone."""
        forget(alive, self.aims, self.inflight)
        self.taking_back &= alive


def most_in_flight(pods: int) -> int:
    """Return how many writes of a kind may be under way to a gang of so many pods."""
    return max(MOST_IN_FLIGHT, pods // PARTS)

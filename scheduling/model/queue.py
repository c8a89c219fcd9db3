"""A queue: quota, limits on borrowing and lending, and the order of the gangs that wait in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from scheduling.model.constraints import Requirement

DEFAULT_QUEUE = "default"
"""The built-in queue: no quota, no guarantee; a GangQueue of this name replaces it."""


class Ordering(StrEnum):
    """What decides between the gangs of one queue, before their arrival does."""

    PRIORITY = "Priority"
    FIFO = "FIFO"


class WhenBlocked(StrEnum):
    """What becomes of the gangs behind one that cannot be admitted."""

    STRICT = "Strict"
    BEST_EFFORT = "BestEffort"
    BACKFILL = "Backfill"


class NodeSelectorScope(StrEnum):
    """Which pods the node selector of a queue holds to its nodes."""

    DEVICES = "Devices"
    ALL = "All"


class Stop(StrEnum):
    """Whether the admin of a queue lets it admit gangs, and lets go on what runs."""

    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


class WithinQueue(StrEnum):
    """Which running gangs of its own queue a waiting gang may stop."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


class Reclaim(StrEnum):
    """Which running gangs of other queues, that borrow, a waiting gang may stop."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class WhileBorrowing(StrEnum):
    """Which running gangs of other queues, that borrow, a waiting one may stop to borrow."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


@dataclass(frozen=True)
class FairSharing:
    """How what a queue and its namespaces held in the past counts in the order of gangs.

    After `half_life` seconds it counts half. A queue of `weight` 2 may hold twice as much as one of
    weight 1; `weights` are those of its namespaces, 1 where nothing is said.
    """

    half_life: float = 7 * 24 * 3600.0
    weight: int = 1
    weights: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Queue:
    """The rules of one queue.

    `quota` is what its gangs may hold together, by resource (milli-CPU, bytes, devices); 0 means
    none. A resource that neither the queue nor one above or below it names is unlimited.
    `borrowing_limit` is how much may be held beyond the quota of the queue and those below it; a
    resource that it does not name is bounded only by what others lend. `lending_limit` is how much
    of that quota others may take while it is free; a resource that it does not name is lent whole.
    `namespaces` selects by labels the namespaces that may use the queue; None selects none.
    `duration` is how long its gangs run that say nothing of it, in seconds. Nothing passes a gang
    any more that was passed `most_passes` times or waited `longest_wait` seconds. `within_queue`
    and `reclaim` say which running gangs its waiting ones may stop. `node_selector` are the labels,
    sorted, of the nodes that its gangs may use, `node_selector_scope` says for which pods.
    `while_borrowing` says so of those that its gangs stop to borrow, of at most the priority
    `borrowers_priority`. `gets_nodes` says that an autoscaler is asked for nodes for its gangs.
    `stop` says that it, and the queues below it, admit nothing new. `fair` says how usage in the
    past counts in its order; None where only what is held now does.
    """

    name: str
    parent: str = ""
    quota: Mapping[str, int] = field(default_factory=dict)
    borrowing_limit: Mapping[str, int] = field(default_factory=dict)
    lending_limit: Mapping[str, int] = field(default_factory=dict)
    ordering: Ordering = Ordering.PRIORITY
    when_blocked: WhenBlocked = WhenBlocked.BEST_EFFORT
    namespaces: tuple[Requirement, ...] | None = None
    duration: float = inf
    most_passes: float = inf
    longest_wait: float = inf
    within_queue: WithinQueue = WithinQueue.NEVER
    reclaim: Reclaim = Reclaim.NEVER
    while_borrowing: WhileBorrowing = WhileBorrowing.NEVER
    borrowers_priority: float = inf
    node_selector: tuple[tuple[str, str], ...] = ()
    node_selector_scope: NodeSelectorScope = NodeSelectorScope.DEVICES
    gets_nodes: bool = False
    stop: Stop = Stop.NONE
    fair: FairSharing | None = None

    @property
    def preempts(self) -> bool:
        """Say whether its waiting gangs may stop any that run."""
        rules = self.within_queue, self.reclaim, self.while_borrowing
        return rules != (WithinQueue.NEVER, Reclaim.NEVER, WhileBorrowing.NEVER)

    def named_resources(self) -> Iterator[str]:
        """Yield the resources that the queue has a rule for, some of them several times."""
        yield from self.quota
        yield from self.borrowing_limit
        yield from self.lending_limit

"""Draws what happens in a soak, and when: the same seed gives the same plan."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle

TEAMS = ("alpha", "beta", "free")
"""Namespaces; the first two have queues of these names, which lend to each other."""
RAY_CLUSTER, RAY_JOB, RAY_SERVICE = "RayCluster", "RayJob", "RayService"
APP_WRAPPER = "AppWrapper"
WRAPPED = ("Job", "Deployment", RAY_CLUSTER)
"""What AppWrappers are made of."""

CREATE, DELETE, GROW, SHRINK = "create", "delete", "grow", "shrink"
SUSPEND, RESUME, END_JOB, FILL = "suspend", "resume", "end job", "fill room by another pod"
EMPTY = "take that pod away"

LOSE_POD, FAIL_POD = "pod deleted", "pod failed"
NODE_GONE, NODE_NOT_READY, NODE_DRAINED = "node deleted", "node not ready", "node drained"
NODE_GPUS, NODE_RETURNS = "node without GPUs", "node returns"

QUEUE_QUOTA, SPACE_QUOTA = "quota of a queue lowered", "ResourceQuota added"

KILL_LEADER, KILL_SPARE, KILL_BOTH = "leader killed", "spare killed", "both coordinators killed"
HANG_LEADER, KILL_WEBHOOK, KILL_EXTENDER = "leader hung", "webhook killed", "extender killed"
KILL_WRAPPER = "wrapper killed"
HANG_SERVER, RESTART_SERVER = "kube-apiserver hung", "kube-apiserver restarted"
HANG_ETCD, RESTART_ETCD = "etcd hung", "etcd restarted"
RESET, DELAY, CUT, SILENCE = "connections reset", "requests delayed", "way cut", "way silent"
REFUSE, LOSE_ANSWERS, FREEZE = "requests refused", "answers lost", "watches frozen"

POD_FAULTS = (LOSE_POD, LOSE_POD, FAIL_POD)
NODE_FAULTS = (NODE_GONE, NODE_NOT_READY, NODE_DRAINED, NODE_GPUS)
PROGRAM_FAULTS = (
    KILL_LEADER,
    KILL_SPARE,
    KILL_BOTH,
    HANG_LEADER,
    KILL_WEBHOOK,
    KILL_EXTENDER,
    KILL_WRAPPER,
)
QUOTA_FAULTS = (QUEUE_QUOTA, SPACE_QUOTA)
SERVER_FAULTS = (HANG_SERVER, RESTART_SERVER, HANG_ETCD, RESTART_ETCD)
WAY_FAULTS = (RESET, DELAY, CUT, SILENCE, REFUSE, LOSE_ANSWERS, FREEZE)
FAULTS = tuple(
    dict.fromkeys(
        (*POD_FAULTS, *NODE_FAULTS, *PROGRAM_FAULTS, *SERVER_FAULTS, *WAY_FAULTS, *QUOTA_FAULTS)
    )
)

OBJECTS, NODES, PROGRAMS, SERVERS, WAYS = "objects", "nodes", "programs", "servers", "ways"
QUOTAS = "quotas"
LANES = (OBJECTS, NODES, PROGRAMS, SERVERS, WAYS, QUOTAS)
"""What is done one after the other, each lane beside the others."""

_PER_MINUTE = {OBJECTS: 7.0, NODES: 3.0, PROGRAMS: 2.0, SERVERS: 0.8, WAYS: 2.5, QUOTAS: 2.0}
_DECKS = {
    OBJECTS: POD_FAULTS,
    NODES: NODE_FAULTS,
    PROGRAMS: PROGRAM_FAULTS,
    SERVERS: SERVER_FAULTS,
    WAYS: WAY_FAULTS,
    QUOTAS: QUOTA_FAULTS,
}
_LASTS = {
    OBJECTS: (0, 0),
    NODES: (5, 45),
    PROGRAMS: (0, 6),
    SERVERS: (1, 9),
    WAYS: (1, 9),
    QUOTAS: (5, 25),
}
"""Seconds that a fault of a lane lasts."""


@dataclass(frozen=True)
class Mix:
    """What a soak is made of."""

    kinds: tuple[str, ...]
    """Of the objects that come, each as often as it is named."""
    lanes: tuple[str, ...] = LANES
    ways_to_delete: int = 2
    """A RayCluster: with more than two its pods are left behind now and then, until the end."""


RAY_ALONE = Mix((RAY_CLUSTER, RAY_CLUSTER, RAY_CLUSTER, RAY_JOB, RAY_SERVICE), LANES[:5])
EVERYTHING = Mix((*RAY_ALONE.kinds, APP_WRAPPER, APP_WRAPPER), ways_to_delete=9)


@dataclass(frozen=True)
class Order:
    """A Ray object to be created."""

    name: str
    kind: str
    team: str
    workers: int
    least: int
    """Workers of the minimum; as many as there are where nothing says less."""
    gpus: int
    """Of each worker."""
    priority: int = 0
    wraps: str = ""
    """What an AppWrapper is made of."""


@dataclass(frozen=True)
class Deed:
    """One thing that is done."""

    at: float
    """Seconds from the beginning."""
    lane: str
    kind: str
    seconds: float = 0.0
    """How long a fault lasts that its lane waits out."""
    number: int = 0
    """Which of those that there are then is meant, modulo their number; of nodes, which."""
    order: Order | None = None


@dataclass(frozen=True)
class Plan:
    """All that happens, in order."""

    seed: int
    seconds: float
    nodes: int
    deeds: tuple[Deed, ...] = field(repr=False)

    def lane(self, name: str) -> Iterator[Deed]:
        """The deeds of a lane, in order."""
        return (deed for deed in self.deeds if deed.lane == name)


def draw(seed: int, minutes: float, nodes: int, mix: Mix = EVERYTHING, start: float = 5.0) -> Plan:
    """Draw the plan of a soak of `minutes` on so many nodes; faults begin after `start` seconds."""
    chance = random.Random(seed)
    seconds = minutes * 60
    deeds = [*_orders(chance, seconds, nodes, mix)]
    for lane in mix.lanes:
        deeds += _faults(chance, lane, start, seconds, nodes)
    return Plan(seed, seconds, nodes, tuple(sorted(deeds, key=lambda deed: deed.at)))


# --- objects


def _orders(chance: random.Random, seconds: float, nodes: int, mix: Mix) -> Iterator[Deed]:
    """Objects that come, change and go; as many GPUs as there are are asked for at once."""
    every = 2.2 if nodes <= _FEW_NODES else 1.5
    for number in range(int(seconds * 0.95 / every)):
        at = (number + chance.uniform(0, 0.9)) * every
        order = _order(chance, f"g{number}", chance.choice(mix.kinds), nodes)
        yield Deed(at, OBJECTS, CREATE, order=order)
        yield from _life(chance, order, at, seconds, mix.ways_to_delete)
        if chance.random() < _FILLERS:
            lasts = chance.uniform(5, 60)
            yield Deed(at, OBJECTS, FILL, number=number)
            if at + lasts < seconds:
                yield Deed(at + lasts, OBJECTS, EMPTY, number=number)


_FEW_NODES = 60
_FILLERS = 0.3
_NODES_A_WORKER = 6
_MOST_WORKERS = 16


def _order(chance: random.Random, name: str, kind: str, nodes: int) -> Order:
    workers = chance.randint(1, min(_MOST_WORKERS, max(2, nodes // _NODES_A_WORKER)))
    least = chance.randint(1, workers) if kind == RAY_CLUSTER else workers
    gpus = chance.choice((1, 2, 4, 8, 8))
    team = chance.choice(TEAMS)
    priority = chance.choice((0, 0, 0, 10))
    wraps = chance.choice(WRAPPED) if kind == APP_WRAPPER else ""
    return Order(name, kind, team, workers, least, gpus, priority, wraps)


def _life(
    chance: random.Random, order: Order, born: float, seconds: float, ways_to_delete: int
) -> Iterator[Deed]:
    """What becomes of an object until it is deleted; what outlives the plan stays."""
    ends = born + chance.uniform(10, 100)
    deeds = []
    if order.kind == RAY_JOB:
        deeds.append(Deed(ends - 5, OBJECTS, END_JOB, number=chance.randrange(4), order=order))
    if order.kind == RAY_CLUSTER:
        for _ in range(chance.randrange(3)):
            kind = chance.choice((GROW, GROW, SHRINK))
            at, by = chance.uniform(born + 3, ends), chance.randint(1, 3)
            deeds.append(Deed(at, OBJECTS, kind, number=by, order=order))
        if chance.random() < 0.15:
            at = chance.uniform(born + 3, ends)
            deeds.append(Deed(at, OBJECTS, SUSPEND, order=order))
            deeds.append(Deed(at + chance.uniform(1, 15), OBJECTS, RESUME, order=order))
    ways = ways_to_delete if order.kind == RAY_CLUSTER else 2
    deeds.append(Deed(ends, OBJECTS, DELETE, number=chance.randrange(ways), order=order))
    yield from (deed for deed in deeds if deed.at < seconds)


# --- faults


def _faults(
    chance: random.Random, lane: str, start: float, seconds: float, nodes: int
) -> Iterator[Deed]:
    """Faults of one lane, evenly over the time, all kinds equally often."""
    count = max(len(_DECKS[lane]), round(_PER_MINUTE[lane] * (seconds - start) / 60))
    dealt = cycle(chance.sample(_DECKS[lane], len(_DECKS[lane])))
    free = dict.fromkeys(range(nodes), 0.0)
    for number in range(count):
        at = start + (number + chance.random()) * (seconds - start) / count
        lasts = chance.uniform(*_LASTS[lane])
        deed = Deed(at, lane, next(dealt), lasts, chance.randrange(1 << 30))
        if lane == NODES:
            yield from _of_node(chance, deed, free, seconds)
        else:
            yield deed


def _of_node(
    chance: random.Random, deed: Deed, free: dict[int, float], seconds: float
) -> Iterator[Deed]:
    """A node fails and returns; the lane does not wait, so several can be away."""
    node = chance.choice([node for node, since in free.items() if since < deed.at])
    back = min(deed.at + deed.seconds, max(seconds, deed.at))
    free[node] = back + 1
    yield Deed(deed.at, NODES, deed.kind, number=node)
    yield Deed(back, NODES, NODE_RETURNS, number=node)

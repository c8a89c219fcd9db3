"""Every gang that could run is admitted in the end, also while others go on arriving."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from hypothesis import event, given
from hypothesis import strategies as st

from scheduling.model.queue import FairSharing, Ordering, Queue, Reclaim, WhenBlocked, WithinQueue
from tests.builders import GPU
from tests.examples import examples
from tests.scheduling.timeline import Job, Node, Timeline, fits_alone

NAMES = ("q0", "q1", "q2")
RULES = (WhenBlocked.BEST_EFFORT, WhenBlocked.BACKFILL, WhenBlocked.STRICT)
WITHIN = (WithinQueue.LOWER_PRIORITY, WithinQueue.LOWER_PRIORITY, WithinQueue.NEVER)
RECLAIM = (Reclaim.ANY, Reclaim.ANY, Reclaim.LOWER_PRIORITY, Reclaim.NEVER)
TOLD = (1.0, 1 / 3, 3.0, inf)
"""By what factor gangs are wrong about how long they run; infinite where they say nothing."""


def limit(amount: int | None) -> dict[str, int]:
    return {} if amount is None else {GPU: amount}


few_nodes = st.lists(st.builds(Node, st.integers(1, 4), st.integers(2, 8)), min_size=1, max_size=2)


@st.composite
def trees(draw: st.DrawFn) -> list[Queue]:
    """Up to four queues of any depth, with any rule and order, some of which preempt."""
    found: list[Queue] = []
    for name in NAMES[: draw(st.integers(1, len(NAMES)))]:
        parent = draw(st.sampled_from([*(each.name for each in reversed(found)), ""]))
        quota = draw(st.sampled_from((2, 3, 4, 6, 1, 0, None)))
        lends = draw(st.none() | st.integers(0, quota)) if parent and quota is not None else None
        queue = Queue(
            name,
            parent,
            limit(quota),
            limit(draw(st.none() | st.integers(0, 6)) if parent else None),
            limit(lends),
            draw(st.sampled_from(Ordering)),
            draw(st.sampled_from(RULES)),
            most_passes=draw(st.sampled_from((1, 3, inf))),
            longest_wait=draw(st.sampled_from((5.0, 30.0, inf))),
        )
        within, reclaim = draw(st.sampled_from(WITHIN)), draw(st.sampled_from(RECLAIM))
        found.append(replace(queue, within_queue=within, reclaim=reclaim))
    return found


@st.composite
def jobs(draw: st.DrawFn, at: int, queues: Sequence[Queue]) -> Job:
    runs = float(draw(st.integers(5, 30)))
    pods = [(draw(st.integers(1, 3)), draw(st.sampled_from((1, 1, 2, 0))), draw(st.integers(0, 2)))]
    if draw(st.booleans()):
        pods.insert(0, (1, 0, draw(st.integers(0, 2))))
    return Job(
        f"g{at}",
        draw(st.sampled_from([each.name for each in queues])),
        float(draw(st.integers(0, 20))),
        runs,
        tuple(pods),
        draw(st.integers(0, 2)),
        draw(st.integers(0, 2)),
        runs * draw(st.sampled_from(TOLD)),
        draw(st.sampled_from((0, 0, 0, 1, 2))),
    )


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    queues = draw(trees())
    found = [draw(jobs(at, queues)) for at in range(draw(st.integers(2, 8)))]
    return Timeline(queues, draw(few_nodes), found)


@examples(120)
@given(timelines())
def test_every_gang_that_fits_alone_has_run_once_no_more_come(timeline: Timeline) -> None:
    timeline.run()
    for job in timeline.jobs.values():
        fits = fits_alone(timeline.queues, timeline.nodes, job)
        assert (job.name in timeline.ended) == fits, f"{job.name}\n{timeline.says()}"
    event(f"{len(timeline.ended)} have run")


WAIT = 10.0
"""Seconds after which gangs of the queues of streams age."""

LONGEST = 6
"""Seconds that a gang of a stream runs at most."""

ARRIVES = 0.5
"""When the large gang comes: each stream has brought one gang by then."""

SET_BACK = 11.0
"""Seconds from a start that fails until the gang has its place again."""


@dataclass(frozen=True)
class Stream:
    """Gangs of a kind that come one after the other, for ever."""

    job: Job
    every: float

    def until(self, end: float) -> list[Job]:
        times = [self.every * at for at in range(int(end / self.every) + 1)]
        return [
            replace(self.job, name=f"{self.job.name}-{at:03}", arrives=arrives)
            for at, arrives in enumerate(times)
        ]


@st.composite
def streams(draw: st.DrawFn, name: str, queue: str, priorities: Sequence[int]) -> Stream:
    runs = draw(st.integers(2, LONGEST))
    pods = draw(st.sampled_from((((1, 1, 0),), ((1, 1, 1),), ((1, 0, 2),), ((2, 1, 0),))))
    told = runs * draw(st.sampled_from(TOLD))
    priority = draw(st.sampled_from(list(priorities)))
    job = Job(name, queue, 0.0, float(runs), pods, priority=priority, told=told)
    return Stream(job, draw(st.sampled_from((0.7, 0.7, 1.9))))


def gpus_of(job: Job) -> int:
    return sum(pods * gpus for pods, gpus, _ in job.pods)


@st.composite
def busy_clusters(draw: st.DrawFn) -> tuple[list[Queue], list[Node], Job, list[Stream]]:
    """A large gang within the quota of its queue, and streams in its queue and in others."""
    nodes = [Node(draw(st.integers(1, 4)), 8) for _ in range(draw(st.integers(1, 3)))]
    gpus = sum(each.gpus for each in nodes)
    quota = draw(st.integers(1, gpus))
    parent = draw(st.sampled_from(("", "all")))
    passes = draw(st.sampled_from((2, inf)))
    top = limit(draw(st.sampled_from((None, 0, 2)))) if parent else {}
    two, three = limit(draw(st.integers(1, gpus))), limit(0) if parent else {}
    rule = draw(st.sampled_from(RULES))
    queues = [
        replace(queue, longest_wait=WAIT, most_passes=passes)
        for queue in (
            Queue("all", quota=top),
            Queue("own", parent, limit(quota), when_blocked=rule),
            Queue("two", parent, two, when_blocked=draw(st.sampled_from(RULES))),
            Queue("three", parent, three),
        )
    ]
    each = draw(st.integers(1, quota))
    pods = ((1, 0, draw(st.integers(0, 4))), (quota // each, each, draw(st.integers(0, 4))))
    told, fails = draw(st.sampled_from((1.0, inf))), draw(st.sampled_from((0, 0, 1)))
    large = Job("large", "own", ARRIVES, 1.0, pods, told=told, fails=fails)
    own = [draw(streams("s0", "own", (-1, 0)))] if draw(st.booleans()) else []
    if rule is WhenBlocked.STRICT:  # it waits behind those that borrow, and they may for ever
        own = [each for each in own if gpus_of(each.job) <= quota]
    others = [draw(st.sampled_from(("two", "three"))) for _ in range(draw(st.integers(1, 3)))]
    apart = [draw(streams(f"t{at}", name, (0, 1))) for at, name in enumerate(others)]
    return queues, nodes, large, own + apart


@examples(40, otherwise=4)
@given(busy_clusters())
def test_a_large_gang_starts_within_a_bound_while_small_ones_go_on_arriving(
    cluster: tuple[list[Queue], list[Node], Job, list[Stream]],
) -> None:
    """It waits until it has aged; then all ends that runs by then, and again what came before it.

    One that gave its room back begins anew, after a time.
    """
    queues, nodes, large, some = cluster
    if fits_alone(queues, nodes, large):
        bound = (1 + large.fails) * longest_wait(some) + large.fails * SET_BACK
        assert_starts_within(bound, queues, nodes, large, some)
        event("fits alone")


def test_a_large_gang_starts_though_an_aged_one_elsewhere_waits_for_quota_for_ever() -> None:
    queues = [replace(Queue(name, "", limit(2)), longest_wait=WAIT) for name in ("own", "two")]
    large = Job("large", "own", ARRIVES, 1.0, ((2, 1, 0),), told=1.0)
    some = [
        Stream(Job("s0", "own", 0.0, 2.0, ((1, 1, 0),), priority=-1, told=2.0), 0.7),
        Stream(Job("t0", "two", 0.0, 2.0, ((2, 1, 0),), told=2.0), 0.7),
        Stream(Job("t1", "two", 0.0, 5.0, ((1, 1, 0),), priority=1, told=5.0), 0.7),
    ]
    assert_starts_within(longest_wait(some), queues, [Node(3, 8)], large, some)


def test_a_large_gang_starts_though_small_ones_of_its_queue_use_its_quota_on_other_nodes() -> None:
    """With them it would borrow, and others come first that do not."""
    queues = [
        replace(Queue(name, "all", limit(4)), longest_wait=WAIT, most_passes=2)
        for name in ("own", "two")
    ]
    large = Job("large", "own", ARRIVES, 1.0, ((1, 4, 0),), told=1.0)
    small = [
        Stream(Job("s0", "own", 0.0, 6.0, ((1, 1, 0),), priority=-1, told=6.0), 0.7),
        Stream(Job("t0", "two", 0.0, 5.0, ((1, 1, 1),), priority=-1, told=inf), 0.7),
        Stream(Job("t1", "two", 0.0, 5.0, ((1, 1, 0),), priority=-1, told=5.0), 0.7),
    ]
    every = [Queue("all"), *queues]
    assert_starts_within(longest_wait(small), every, [Node(4, 8), Node(2, 6)], large, small)


def longest_wait(some: Sequence[Stream]) -> float:
    """Return how long a gang may wait while these come: of each stream one gang came before it.

    Where gangs run longer than they say, what was kept until a time has to be kept until they end.
    """
    jobs = [each.job for each in some]
    longest = max(max(job.runs, job.told if job.told < inf else 0.0) for job in jobs)
    rounds = 2 + 2 * len(jobs) if any(job.told < job.runs for job in jobs) else 2 + len(jobs)
    return WAIT + rounds * longest


def assert_starts_within(
    wait: float,
    queues: Sequence[Queue],
    nodes: Sequence[Node],
    large: Job,
    some: Sequence[Stream],
    used: Mapping[str, Mapping[str, float]] | None = None,
) -> None:
    """Run it all; `used` is what namespaces of its queue used before, where that counts."""
    bound = ARRIVES + wait
    small = [job for each in some for job in each.until(bound)]
    timeline = Timeline(queues, nodes, [large, *small])
    if used is not None:
        timeline.usages[large.queue].begin_with(used, {}, 0.0)
    timeline.run(bound + large.runs)
    assert "large" in timeline.ended, timeline.says()


@st.composite
def two_ways_to_starve(draw: st.DrawFn) -> tuple[list[Queue], list[Node], Job, list[Stream]]:
    """Streams of its own queue on nodes that a gang cannot use, and of others on those it can.

    The first take its quota while it waits for nodes, the others its nodes while it waits for
    quota.
    """
    gpus = draw(st.integers(2, 4))
    nodes = [Node(gpus, 8), Node(draw(st.integers(1, gpus - 1)), draw(st.integers(0, 8)))]
    rule, passes = draw(st.sampled_from(RULES)), draw(st.sampled_from((2, inf)))
    parent = draw(st.sampled_from(("", "all")))
    queues = [
        replace(queue, longest_wait=WAIT, most_passes=passes, when_blocked=rule)
        for queue in (
            Queue("all"),
            Queue("own", parent, limit(gpus)),
            Queue("two", parent, limit(draw(st.integers(1, gpus)))),
        )
    ]
    large = Job("large", "own", ARRIVES, 1.0, ((1, gpus, draw(st.integers(0, 2))),), told=1.0)
    names = (("s0", "own"), ("t0", "two"), ("t1", "two"))
    return queues, nodes, large, [draw(streams(name, queue, (-1,))) for name, queue in names]


@examples(16, otherwise=3)
@given(two_ways_to_starve())
def test_a_large_gang_starts_within_a_bound_where_it_lacks_nodes_and_quota_in_turn(
    cluster: tuple[list[Queue], list[Node], Job, list[Stream]],
) -> None:
    queues, nodes, large, some = cluster
    if fits_alone(queues, nodes, large):
        assert_starts_within(longest_wait(some), queues, nodes, large, some)


def test_a_gang_that_falls_short_of_quota_within_a_cycle_is_passed_no_longer_either() -> None:
    """Gangs of its queue and of one that lends to it end together: the loan goes first."""
    limits = {"all": None, "own": 2, "two": 3}
    queues = [
        replace(Queue(name, "" if name == "all" else "all", limit(n)), longest_wait=WAIT)
        for name, n in limits.items()
    ]
    large = Job("large", "own", 3.0, 1.0, ((1, 0, 0), (2, 1, 0)), told=1.0)
    small = [
        Stream(Job(name, queue, 0.0, 2.0, ((1, 1, 0),), priority=priority, told=2.0), 0.7)
        for name, queue, priority in (("s0", "own", -1), ("t0", "two", 0), ("t1", "two", 0))
    ]
    end = 3.0 + WAIT + (2 + len(small)) * LONGEST
    jobs = [large, *(job for each in small for job in each.until(end))]
    timeline = Timeline(queues, [Node(3, 8), Node(2, 8)], jobs)
    timeline.run(end)
    assert "large" in timeline.ended, timeline.says()


def test_an_aged_gang_keeps_its_node_while_it_waits_for_quota_and_its_quota_as_well() -> None:
    """Small ones of its queue run on a node that it cannot use, others on the one that it can."""
    queues = [replace(Queue(name, "", limit(3)), longest_wait=WAIT) for name in ("own", "two")]
    large = Job("large", "own", ARRIVES, 1.0, ((1, 3, 0),), told=1.0)
    small = [
        Stream(Job("s0", "own", 0.0, 2.0, ((1, 1, 0),), priority=-1, told=2.0), 0.7),
        Stream(Job("t0", "two", 0.0, 2.0, ((1, 1, 2),), told=2.0), 0.7),
    ]
    assert_starts_within(longest_wait(small), queues, [Node(3, 8), Node(2, 1)], large, small)


HEAVY, LIGHT = "team", ("one", "two")


@st.composite
def heavy_users(draw: st.DrawFn) -> tuple[list[Queue], list[Node], Job, list[Stream]]:
    """A large gang of a namespace that used far more than others, whose gangs come for ever."""
    gpus = draw(st.integers(2, 4))
    fair = FairSharing(draw(st.sampled_from((5.0, 1e6))), draw(st.integers(1, 3)))
    rule, parent = draw(st.sampled_from(RULES)), draw(st.sampled_from(("", "all")))
    queues = [
        replace(queue, longest_wait=WAIT, most_passes=inf, when_blocked=rule, fair=fair)
        for queue in (
            Queue("all"),
            Queue("own", parent, limit(gpus)),
            Queue("two", parent, limit(draw(st.integers(1, gpus)))),
        )
    ]
    pods = ((1, draw(st.integers(1, gpus)), draw(st.integers(0, 2))),)
    large = Job("large", "own", ARRIVES, 1.0, pods, told=1.0, namespace=HEAVY)
    some = [draw(streams(f"s{at}", "own", (0,))) for at in range(draw(st.integers(1, 2)))]
    mine = [
        replace(each, job=replace(each.job, namespace=LIGHT[at])) for at, each in enumerate(some)
    ]
    others = [draw(streams("t0", "two", (0, 1)))] if draw(st.booleans()) else []
    return queues, [Node(gpus, 8)], large, mine + others


@examples(16, otherwise=3)
@given(heavy_users())
def test_a_gang_of_the_heaviest_namespace_starts_within_the_same_bound(
    cluster: tuple[list[Queue], list[Node], Job, list[Stream]],
) -> None:
    """Others go before it for as long as it has not waited too long, and then no more."""
    queues, nodes, large, some = cluster
    if fits_alone(queues, nodes, large):
        used = {HEAVY: {GPU: 1e6, "cpu": 1e9}}
        assert_starts_within(longest_wait(some), queues, nodes, large, some, used)
        event("fits alone")

"""What the quota covers of running gangs: in order, beside what it covers before, in each queue."""

from dataclasses import replace

from scheduling.model.gang import GangKey
from scheduling.model.preemption import GangPart
from scheduling.model.queue import Queue
from scheduling.preemption.coverage import Coverage, Guarantees
from scheduling.queueing.quota_tree import QuotaTree
from tests.builders import GPU, gang, group, shape
from tests.scheduling.preemption.cluster import part


def covered(queues: list[Queue], *parts: GangPart) -> dict[str, list[str]]:
    """The queues that cover each part; `~a` is the quota that queue a names itself."""
    tree = QuotaTree(queues)
    guarantees = Guarantees(tree)
    uses = [guarantees.use(each) for each in parts]
    coverage = Coverage(guarantees, uses)
    names = (*tree.names, *(f"~{name}" for name in tree.names))
    return {
        f"{each.gang.name}{each.replica}": sorted(names[at] for at in coverage.covered(use))
        for each, use in zip(parts, uses, strict=True)
    }


def test_the_higher_priority_comes_first_then_minimums_then_the_earlier() -> None:
    queue = Queue("a", quota={GPU: 4})
    found = covered(
        [queue],
        part("low", {"n": 2}, priority=0, admitted=1),
        part("late", {"n": 2}, priority=1, admitted=3),
        part("late", {"n": 1}, replica="r", priority=1, admitted=3),
        part("early", {"n": 2}, priority=1, admitted=2),
    )
    assert found == {"low": [], "late": ["a"], "later": [], "early": ["a"]}


def test_what_does_not_fit_uses_nothing_up() -> None:
    queue = Queue("a", quota={GPU: 4})
    found = covered(
        [queue],
        part("wide", {"n": 5}, priority=2),
        part("small", {"n": 4}, priority=1),
    )
    assert found == {"wide": [], "small": ["a"]}


def test_a_surplus_is_covered_only_where_its_minimum_is() -> None:
    queue = Queue("a", quota={GPU: 4})
    found = covered([queue], part("g", {"n": 5}), part("g", {"n": 1}, replica="r"))
    assert found == {"g": [], "gr": []}


def test_what_a_queue_does_not_limit_is_covered_nowhere() -> None:
    assert covered([Queue("a")], part("g", {"n": 1})) == {"g": []}
    cpu = GangPart(GangKey("team", "c"), "", "a", 0, 0.0, (("n", (("cpu", 1),)),))
    assert covered([Queue("a", quota={GPU: 4})], cpu) == {"c": []}


def test_what_a_queue_lends_to_no_other_does_not_count_above_it() -> None:
    """`kept` uses what `b` keeps, so all four of `top` are there for `free`."""
    queues = [
        Queue("top", quota={GPU: 4}),
        Queue("b", "top", quota={GPU: 2}, lending_limit={GPU: 0}),
        Queue("c", "top"),
    ]
    found = covered(
        queues, part("kept", {"n": 2}, "b", priority=9), part("free", {"n": 4}, "c", priority=1)
    )
    assert found == {"kept": ["b", "top"], "free": ["top"]}


def test_gangs_of_an_inner_queue_have_what_it_names_itself() -> None:
    queues = [Queue("top", quota={GPU: 2}), Queue("b", "top", quota={GPU: 2})]
    found = covered(queues, part("own", {"n": 2}, "top"), part("more", {"n": 2}, "top", admitted=1))
    assert found == {"own": ["top", "~top"], "more": ["top"]}


def test_one_more_gang_comes_last_of_its_priority_and_before_surplus() -> None:
    tree = QuotaTree([Queue("a", quota={GPU: 4})])
    guarantees = Guarantees(tree)
    parts = [
        part("g", {"n": 2}, priority=1, admitted=5),
        part("g", {"n": 2}, replica="r", priority=1, admitted=5),
    ]
    coverage = Coverage(guarantees, [guarantees.use(each) for each in parts])
    for pods, priority, names in ((2, 1, {0}), (3, 1, set()), (3, 2, {0}), (1, 0, set())):
        asks = gang("new", group("w", pods, shape(gpu=1)), priority=priority)
        amounts = tree.requests({GPU: pods})
        use = guarantees.newest(replace(asks, queue="a"), amounts)
        assert coverage.would_cover(use) == names, (pods, priority)

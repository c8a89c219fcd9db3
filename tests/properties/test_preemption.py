"""Preemption comes to an end, takes no more than it must, and nothing that a quota covers.

Why it comes to an end (the rules and their words are those of docs/decisions/0034 and 0063). Let
no gang come, none end by itself, and let victims wait again. For each guarantee X and each
priority, the highest first, c(X) notes how many minimums are covered at X, and then which
replicas of surplus are, as a row of bits. c is the c(X) of all guarantees, the deepest first,
followed by the same of all running parts. It has finitely many values. With each admission and
each preemption c grows in lexicographic order:

1. A part that is not covered at X changes nothing at X when it goes. A part that is added and
   covered leaves all before it as covered as it was, and a minimum is added as the last of its
   priority.
2. Admission without victims: by 1 each c(X) grows or stays, and the end of c grows.
3. Preemption by P that some guarantee covers, X being the deepest. No victim covered at X comes
   before P there: one of P's queue has a lower priority, one of another queue that counts at X
   has its L at X or below, so that P would be covered below X. So c(X) grows. No c(Y) falls where
   Y is as deep or deeper: on P's path Y does not cover P, so no victim of P's queue, and a victim
   of another queue would need P covered below Y; off P's path Y is below L on the victim's, where
   the victim is not covered.
4. Preemption by P that none covers takes parts of P's queue of a lower priority that none covers.
   All c(X) stay, and the end of c grows at P's priority.
5. With `whileBorrowing` a victim V of another queue has a lower priority and is covered at no
   guarantee that would not cover P. At the deepest X that covers P, V comes after P, so c(X)
   grows; a Y as deep that covers V covers P too, against the choice of X. Where none covers P,
   none covers V: as 4.

Each victim is judged alone, so victims of all rules may be mixed, in whatever order they are
chosen. Two gangs never stop each other in turn: after a reclaim P is covered where it was, and
else priority forbids it.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.amounts import Amounts
from scheduling.model.gang import GangKey
from scheduling.model.preemption import GangPart, Preemption
from scheduling.model.queue import (
    Ordering,
    Queue,
    Reclaim,
    WhenBlocked,
    WhileBorrowing,
    WithinQueue,
)
from scheduling.model.verdict import Admitted
from scheduling.queueing.quota_tree import QuotaTree
from tests.builders import GPU
from tests.examples import examples
from tests.scheduling.preemption.cluster import Cluster, Spec

NAMES = ("q0", "q1", "q2", "q3", "q4")
CYCLES = 60
WITHIN = (WithinQueue.LOWER_PRIORITY, WithinQueue.LOWER_PRIORITY, WithinQueue.NEVER)
RECLAIM = (Reclaim.ANY, Reclaim.ANY, Reclaim.LOWER_PRIORITY, Reclaim.NEVER)
KEEPS: tuple[tuple[str, ...], ...] = ((), (), (), ("",), ("r0",), ("", "r1"))
"""Parts of a gang that may not be stopped."""


@st.composite
def trees(draw: st.DrawFn) -> list[Queue]:
    """Up to five queues of any depth; some without quota, some that lend or borrow less."""
    found: list[Queue] = []
    for name in NAMES[: draw(st.integers(1, len(NAMES)))]:
        parent = draw(st.sampled_from([*(each.name for each in reversed(found)), ""]))
        quota = draw(st.integers(0, 6) | st.none())
        lends = draw(st.none() | st.integers(0, 4)) if parent and quota is not None else None
        borrows = draw(st.none() | st.integers(0, 6)) if parent else None
        found.append(
            Queue(
                name,
                parent,
                quota={} if quota is None else {GPU: quota},
                lending_limit={} if lends is None else {GPU: lends},
                borrowing_limit={} if borrows is None else {GPU: borrows},
                within_queue=draw(st.sampled_from(WITHIN)),
                reclaim=draw(st.sampled_from(RECLAIM)),
                while_borrowing=draw(st.sampled_from(WhileBorrowing)),
                borrowers_priority=draw(st.sampled_from((0, inf))),
                ordering=draw(st.sampled_from(Ordering)),
                when_blocked=draw(st.sampled_from((WhenBlocked.BEST_EFFORT, WhenBlocked.STRICT))),
            )
        )
    return found


@st.composite
def clusters(draw: st.DrawFn, most: int = 7) -> Cluster:
    queues = draw(trees())
    names = [each.name for each in queues]
    gangs = [
        Spec(
            f"g{at}",
            draw(st.sampled_from(names)),
            draw(st.integers(1, 3)),
            priority=draw(st.integers(0, 2)),
            surplus=draw(st.integers(0, 2)),
            created=float(draw(st.integers(0, 3))),
            each=draw(st.sampled_from((1, 1, 2))),
            keeps=draw(st.sampled_from(KEEPS)),
        )
        for at in range(draw(st.integers(2, most)))
    ]
    nodes = {f"n{at}": draw(st.integers(2, 4)) for at in range(draw(st.integers(1, 2)))}
    return Cluster(queues, nodes, gangs)


def runs_some(cluster: Cluster, how_many: int) -> None:
    """Let some of the gangs come, one after the other, before the others do."""
    everyone = cluster.gangs
    for count in range(1, how_many + 1):
        cluster.gangs = everyone[:count]
        cluster.settle(CYCLES)
    cluster.gangs = everyone


def described(cluster: Cluster) -> str:
    return f"{cluster.queues}\n{cluster.nodes}\n{cluster.gangs}\n{cluster.stopped}"


@examples(200)
@given(clusters(9))
def test_it_comes_to_an_end_and_no_two_stop_each_other_in_turn(cluster: Cluster) -> None:
    """Gangs come one after the other, none ends by itself, and victims wait again at once."""
    everyone = cluster.gangs
    for count in range(1, len(everyone) + 1):
        cluster.gangs, cluster.stopped = everyone[:count], []
        assert cluster.settle(CYCLES), described(cluster)
        assert not cluster.stopped_kept, described(cluster)
        pairs = set(cluster.stopped)
        assert not any((victim, preemptor) in pairs for preemptor, victim in pairs), described(
            cluster
        )


@examples(50)
@given(clusters(), st.integers(1, 4))
def test_at_rest_one_more_cycle_finds_nothing(cluster: Cluster, first: int) -> None:
    """Some gangs run, the others come at once, and then the first gang ends."""
    everyone = cluster.gangs
    for gangs in (everyone[:first], everyone, everyone[1:]):
        cluster.gangs, keys = gangs, {each.key for each in gangs}
        cluster.parts = [each for each in cluster.parts if each.gang in keys]
        assert cluster.rest(CYCLES), described(cluster)
        parts = list(cluster.parts)
        assert not cluster.stop(cluster.cycle()), described(cluster)
        assert cluster.parts == parts, described(cluster)


@examples(100)
@given(clusters(9))
def test_each_preemption_is_what_the_rules_allow_and_within_quota(cluster: Cluster) -> None:
    everyone = cluster.gangs
    for count in range(1, len(everyone) + 1):
        cluster.gangs = everyone[:count]
        parts, before = list(cluster.parts), cluster.held()
        found = cluster.cycle()
        if found and cluster.parts == parts:  # those after the first see what it was promised
            check_allowed(cluster, parts, found[0])
        check_quota(cluster, before)
        cluster.stop(found)
        cluster.end()
        cluster.settle(CYCLES)


@examples(75)
@given(clusters(5), st.integers(1, 4))
def test_what_is_taken_is_enough_and_no_less_would_be(cluster: Cluster, first: int) -> None:
    runs_some(cluster, first)
    for spec in cluster.gangs[first:]:
        alone = Cluster(cluster.queues, cluster.nodes, [spec], list(cluster.parts))
        found = alone.cycle()
        again = Cluster(cluster.queues, cluster.nodes, [spec], list(cluster.parts))
        assert again.cycle() == found
        for preemption in found:
            gone = {(part.gang, part.replica) for part in preemption.parts}
            assert is_admitted(cluster, spec, gone)
            for less in smaller(preemption.parts):
                assert not is_admitted(cluster, spec, less), described(cluster)


@examples(100)
@given(clusters(), st.integers(1, 4), st.integers(0, 2))
def test_where_what_is_ending_is_enough_nothing_is_taken(
    cluster: Cluster, first: int, at: int
) -> None:
    runs_some(cluster, first)
    running = sorted({part.gang.name for part in cluster.parts})
    if not running:
        return
    ends = running[at % len(running)]
    parts = [replace(p, is_ending=p.gang.name == ends) for p in cluster.parts]
    for spec in cluster.gangs[first:]:
        alone = Cluster(cluster.queues, cluster.nodes, [spec], list(parts))
        gone = {(p.gang, p.replica) for p in parts if p.is_ending}
        if is_admitted(cluster, spec, gone):
            assert not alone.stop(alone.cycle())


@examples(75)
@given(clusters(5), st.integers(1, 4))
def test_where_all_that_may_be_taken_is_enough_something_is(cluster: Cluster, first: int) -> None:
    runs_some(cluster, first)
    for spec in cluster.gangs[first:]:
        alone = Cluster(cluster.queues, cluster.nodes, [spec], list(cluster.parts))
        if not alone.cycle() and not isinstance(alone.verdicts.get(spec.name), Admitted):
            gone = takeable(cluster, spec)
            assert not is_admitted(cluster, spec, gone), described(cluster)


def takeable(cluster: Cluster, spec: Spec) -> set[tuple[GangKey, str]]:
    """Name all parts that a gang may take, with a minimum those of its surplus."""
    keeps = {part.gang for part in cluster.parts if part.kept_because}
    found = [
        part
        for part in cluster.parts
        if may_take(cluster.tree, cluster.parts, spec, part)
        and not (part.kept_because or (part.is_minimum and part.gang in keeps))
    ]
    whole = {part.gang for part in found if part.is_minimum}
    return {
        (part.gang, part.replica) for part in cluster.parts if part in found or part.gang in whole
    }


def is_admitted(cluster: Cluster, spec: Spec, gone: set[tuple[GangKey, str]]) -> bool:
    """Say whether a gang would be admitted in the cluster without some parts, and without rules."""
    rest = [each for each in cluster.parts if (each.gang, each.replica) not in gone]
    queues = [
        replace(
            each,
            within_queue=WithinQueue.NEVER,
            reclaim=Reclaim.NEVER,
            while_borrowing=WhileBorrowing.NEVER,
        )
        for each in cluster.queues
    ]
    alone = Cluster(queues, cluster.nodes, [replace(spec, surplus=0)], rest)
    alone.cycle()
    return isinstance(alone.verdicts.get(spec.name), Admitted)


def smaller(parts: Sequence[GangPart]) -> list[set[tuple[GangKey, str]]]:
    """Every proper subset in which a gang loses its surplus with its minimum."""
    found = []
    whole = {part.gang for part in parts if part.is_minimum}
    for size in range(len(parts)):
        for some in combinations(parts, size):
            gone = {(part.gang, part.replica) for part in some}
            minimums = {part.gang for part in some if part.is_minimum}
            split = any((p.gang, p.replica) not in gone for p in parts if p.gang in minimums)
            if not split and minimums <= whole:
                found.append(gone)
    return found


def check_quota(cluster: Cluster, before: Amounts) -> None:
    """What a queue took in this cycle, its quota had."""
    tree, after = cluster.tree, cluster.held()
    available = tree.available(tree.used(after))
    grew = (after > before) & tree.limited
    assert (available[grew] >= 0).all(), described(cluster)


# ---- the rules, said once more in the plainest way


def check_allowed(cluster: Cluster, parts: Sequence[GangPart], preemption: Preemption) -> None:
    spec = next(each for each in cluster.gangs if each.key == preemption.preemptor)
    for victim in preemption.parts:
        assert not victim.kept_because, described(cluster)
        mine = [part for part in parts if part.gang == victim.gang]
        if victim.is_minimum:
            assert not any(part.kept_because for part in mine), described(cluster)
        assert may_take(cluster.tree, parts, spec, victim), described(cluster)


def may_take(tree: QuotaTree, parts: Sequence[GangPart], spec: Spec, victim: GangPart) -> bool:
    queue = tree.queues[tree.index[spec.queue]]
    ours, theirs = covered_with(tree, parts, spec), covered(tree, parts, victim)
    lower = victim.priority < spec.priority
    if victim.queue == spec.queue:
        return queue.within_queue is WithinQueue.LOWER_PRIORITY and lower and theirs <= ours
    a, b = path(tree, spec.queue), path(tree, victim.queue)
    borrows = queue.while_borrowing is WhileBorrowing.LOWER_PRIORITY and {*a} & {*b}
    if borrows and lower and victim.priority <= queue.borrowers_priority and theirs <= ours:
        return True
    if queue.reclaim is Reclaim.NEVER or (queue.reclaim is Reclaim.LOWER_PRIORITY and not lower):
        return False
    return bool(ours & ({*a} - {*b})) and not theirs & ({*b} - {*a})


def path(tree: QuotaTree, name: str) -> list[str]:
    """The queues above; before them, for a queue with others below it, its gangs by themselves."""
    found, at = [], name
    if any(each.parent == name for each in tree.queues):
        found.append(f"gangs of {name}")
    while at:
        found.append(at)
        at = tree.queues[tree.index[at]].parent
    return found


def covered(tree: QuotaTree, parts: Sequence[GangPart], of: GangPart) -> set[str]:
    return {name for name in path(tree, of.queue) if of in at_node(tree, parts, name)}


def covered_with(tree: QuotaTree, parts: Sequence[GangPart], spec: Spec) -> set[str]:
    room = (("anywhere", ((GPU, spec.pods * spec.each),)),)
    newest = GangPart(spec.key, "", spec.queue, spec.priority, 1e9, room)
    return covered(tree, [*parts, newest], newest)


def at_node(tree: QuotaTree, parts: Sequence[GangPart], name: str) -> list[GangPart]:
    """The parts that the quota of one queue covers, tried one after the other."""
    below = [each for each in parts if name in path(tree, each.queue)]
    below.sort(key=lambda p: (-p.priority, not p.is_minimum, p.admitted, str(p.gang), p.replica))
    found: list[GangPart] = []
    for each in below:
        has_minimum = each.is_minimum or any(f.gang == each.gang for f in found)
        if has_minimum and is_within(tree, [*found, each], each, name):
            found.append(each)
    return found


def is_within(tree: QuotaTree, parts: Sequence[GangPart], last: GangPart, name: str) -> bool:
    held = np.zeros((len(tree.names), len(tree.resources)), dtype=np.int64)
    for each in parts:
        for _, amounts in each.room:
            held[tree.index[each.queue]] += tree.requests(dict(amounts))
    row = tree.index[last.queue]
    if GPU not in tree.column or not tree.limited[row][tree.column[GPU]]:
        return False
    column = tree.column[GPU]
    if name.startswith("gangs of "):
        return bool(held[row][column] <= tree.queues[row].quota.get(GPU, 0))
    at = tree.index[name]
    return bool(tree.used(held)[at][column] <= tree.subtree[at][column])

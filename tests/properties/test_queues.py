"""No cycle takes a queue, or one above it, beyond what it may hold, whatever the rules."""

from dataclasses import replace

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from scheduling.cycle import next_cycle
from scheduling.model.gang import PendingGang
from scheduling.model.placement import amounts_of
from scheduling.model.queue import Queue, WhenBlocked
from scheduling.model.verdict import Admitted
from scheduling.queueing.queues import Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from tests.builders import GPU, columns, gang, group, node, shape
from tests.examples import examples

NAMES = ("a", "b", "c")
limits = st.none() | st.integers(0, 6)


@st.composite
def trees(draw: st.DrawFn) -> QuotaTree:
    def limit(amount: int | None) -> dict[str, int]:
        return {} if amount is None else {GPU: amount}

    queues = [Queue("all", quota=limit(draw(limits)))]
    for name in NAMES:
        quota = draw(st.integers(0, 8))
        lending = draw(st.none() | st.integers(0, quota))
        when = draw(st.sampled_from(list(WhenBlocked)))
        borrowing = limit(draw(limits))
        queues.append(
            Queue(name, "all", {GPU: quota}, borrowing, limit(lending), when_blocked=when)
        )
    return QuotaTree(queues)


@st.composite
def gangs(draw: st.DrawFn) -> list[PendingGang]:
    one = shape(gpu=1)
    return [
        replace(
            gang(
                f"g{at}",
                group("workers", draw(st.integers(1, 6)), one),
                surplus=((group("workers", 1, one),),) * draw(st.integers(0, 3)),
                created=at,
            ),
            queue=draw(st.sampled_from([*NAMES, "all"])),
            duration=draw(st.sampled_from([10.0, 1000.0, float("inf")])),
        )
        for at in range(draw(st.integers(1, 6)))
    ]


@examples(200)
@given(trees(), gangs(), st.integers(4, 24))
def test_no_admission_raises_use_above_quota(
    tree: QuotaTree, pending: list[PendingGang], room: int
) -> None:
    waiting = WaitingGangs(tree)
    for each in pending:
        waiting.put(each)
    held = np.zeros((len(tree.names), len(tree.resources)), dtype=np.int64)
    told = Queues(waiting, held, {GPU: room})
    decisions, _ = next_cycle(told, columns(node("n", gpu=room)), None)
    queue_of = {each.key: each.queue for each in pending}
    admitted = {d.key: d.verdict for d in decisions if isinstance(d.verdict, Admitted)}
    for key, verdict in admitted.items():
        held[tree.index[queue_of[key]]] += tree.requests(amounts_of(verdict.placement))
    event(f"{len(admitted)} admitted")
    assert {decision.key for decision in decisions} == set(queue_of)
    assert (tree.available(tree.used(held)) >= 0).all()

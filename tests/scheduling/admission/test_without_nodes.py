"""A gang whose pods run elsewhere: quota alone decides, and no node is asked."""

from dataclasses import replace

from scheduling.cycle import next_cycle, run_cycle
from scheduling.model.gang import PendingGang
from scheduling.model.placement import NOWHERE, amounts_of
from scheduling.model.queue import Queue, WhenBlocked
from scheduling.model.verdict import Admitted, Reason, Refusal
from scheduling.queueing.queues import one_queue
from tests.builders import GPU, columns, gang, group, node, shape

BOUND = shape(cpu=1, gpu=4, selector={"gpu": "none-such"})


def elsewhere(name: str, pods: int = 2, queue: str = "far", created: float = 0.0) -> PendingGang:
    asked = gang(name, group("workers", pods, BOUND), created=created)
    return replace(asked, needs_nodes=False, queue=queue)


def verdicts(
    rule: WhenBlocked, *asked: PendingGang, quota: int = 8
) -> dict[str, Admitted | Refusal]:
    queues = one_queue(asked, Queue("far", quota={GPU: quota}, when_blocked=rule))
    decisions, _ = next_cycle(queues, columns(node("n1", cpu=2, gpu=1)), None)
    return {each.key.name: each.verdict for each in decisions}


def test_it_is_admitted_on_no_node_whatever_its_pods_ask_of_nodes() -> None:
    surplus = ((group("workers", 1, BOUND),), (group("workers", 1, BOUND),))
    asked = replace(elsewhere("a", queue="default"), surplus=surplus)
    (found,) = run_cycle([asked], columns())
    assert isinstance(found.verdict, Admitted)
    (placed,) = found.verdict.placement.assignments
    assert placed.nodes == ((NOWHERE, 4),)
    assert found.verdict.units == (0, 1)
    assert amounts_of(found.verdict.placement)[GPU] == 16


def test_it_takes_no_room_from_gangs_beside_it() -> None:
    here = gang("here", group("workers", 2, shape(cpu=1)), created=1.0)
    found = run_cycle([elsewhere("a", queue="default"), here], columns(node("n1", cpu=2)))
    assert all(isinstance(each.verdict, Admitted) for each in found)


def test_quota_and_the_rule_of_its_queue_decide() -> None:
    asked = (elsewhere("a"), elsewhere("b", created=1.0), elsewhere("c", 1, created=2.0))
    strict = verdicts(WhenBlocked.STRICT, *asked, quota=12)
    assert isinstance(strict["a"], Admitted)
    assert isinstance(strict["b"], Refusal)
    assert strict["b"].reason is Reason.QUOTA_EXCEEDED
    assert isinstance(strict["c"], Refusal)
    assert strict["c"].reason is Reason.QUEUE_BLOCKED
    passing = verdicts(WhenBlocked.BEST_EFFORT, *asked, quota=12)
    assert isinstance(passing["c"], Admitted)

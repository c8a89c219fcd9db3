"""Which nodes the pods of a queue may use."""

from dataclasses import replace

from scheduling.cycle import next_cycle
from scheduling.model.gang import PendingGang
from scheduling.model.pod import PodShape
from scheduling.model.queue import NodeSelectorScope, Queue
from scheduling.model.verdict import Admitted, Reason, Refusal
from scheduling.queueing.queue_nodes import Labels, NodeRules, node_rules, on_nodes_of_queue
from scheduling.queueing.queues import one_queue
from scheduling.queueing.quota_tree import QuotaTree
from tests.builders import GPU, columns, gang, group, node, shape

A100, H100, SPOT = ("gpu", "a100"), ("gpu", "h100"), ("spot", "yes")
GPUS, CPUS = shape(cpu=1, gpu=4), shape(cpu=1)


def labels(of: PodShape, name: str, *queues: Queue) -> Labels:
    return node_rules(QuotaTree(queues)).get(name, NodeRules()).labels(of)


def model(name: str, *wanted: tuple[str, str], parent: str = "", quota: int | None = 8) -> Queue:
    amounts = {} if quota is None else {GPU: quota}
    return Queue(name, parent, amounts, node_selector=tuple(sorted(wanted)))


def test_pods_with_a_device_under_quota_are_bound_and_no_others() -> None:
    queue = model("q", A100)
    assert labels(GPUS, "q", queue) == (A100,)
    assert labels(CPUS, "q", queue) == ()
    assert labels(shape(cpu=1, extra={"example.com/fuse": 1}), "q", queue) == ()


def test_a_scope_of_all_binds_every_pod() -> None:
    queue = replace(model("q", A100), node_selector_scope=NodeSelectorScope.ALL)
    assert labels(CPUS, "q", queue) == labels(GPUS, "q", queue) == (A100,)


def test_a_queue_inherits_the_selectors_above_it() -> None:
    """Also where only the queue above, or only the one below, has a quota of the device."""
    above, below = model("top", SPOT, quota=None), model("q", A100, parent="top")
    assert labels(GPUS, "q", above, below) == (A100, SPOT)
    assert labels(GPUS, "top", above, below) == (SPOT,)
    above, below = model("top", SPOT), model("q", A100, parent="top", quota=None)
    assert labels(GPUS, "q", above, below) == (A100, SPOT)


def test_each_queue_has_its_own_scope() -> None:
    above = replace(model("top", SPOT), node_selector_scope=NodeSelectorScope.ALL)
    below = model("q", A100, parent="top")
    assert labels(CPUS, "q", above, below) == (SPOT,)
    assert labels(GPUS, "q", above, below) == (A100, SPOT)


def test_a_selector_without_a_quota_of_any_device_binds_nothing() -> None:
    queue = Queue("q", quota={"cpu": 4000}, node_selector=(A100,))
    assert labels(GPUS, "q", queue) == ()


def test_queues_without_a_selector_have_no_rules() -> None:
    assert not node_rules(QuotaTree([model("q")]))


def held(asked: PendingGang, *wanted: tuple[str, str]) -> PendingGang:
    (rules,) = node_rules(QuotaTree([model("q", *wanted)])).values()
    return on_nodes_of_queue(asked, rules)


NODES = columns(
    node("a", gpu=8, labels=dict([A100])), node("b", gpu=8, labels=dict([H100])), node("c")
)


def decided(asked: PendingGang) -> Admitted | Refusal:
    (decision,), _ = next_cycle(one_queue([asked]), NODES, None)
    return decision.verdict


def test_all_groups_of_a_gang_are_held_its_surplus_too() -> None:
    asked = gang("g", group("w", 2, GPUS), surplus=tuple((group("w", 1, GPUS),) for _ in range(4)))
    verdict = decided(held(asked, H100))
    assert isinstance(verdict, Admitted)
    assert {name for each in verdict.placement.assignments for name, _ in each.nodes} == {"b"}
    assert verdict.left_out is not None
    assert "2 do not match nodeSelector gpu=h100 of the gang's queue" in verdict.left_out.message


def refusal(asked: PendingGang) -> tuple[Reason, str]:
    verdict = decided(asked)
    assert isinstance(verdict, Refusal)
    return verdict.reason, verdict.message


def test_a_gang_without_a_node_is_told_of_the_selector() -> None:
    reason, message = refusal(held(gang("g", group("w", 2, GPUS)), ("gpu", "b200")))
    assert reason is Reason.NO_FEASIBLE_NODE
    assert message == (
        "0 of 2 w fit: no node is feasible for them (3 nodes: 3 do not match nodeSelector "
        "gpu=b200 of the gang's queue); no node has gpu=b200 (existing values: a100, h100)"
    )


def test_queues_that_contradict_each_other_leave_no_node() -> None:
    reason, message = refusal(held(gang("g", group("w", 1, GPUS)), A100, H100))
    assert reason is Reason.NO_FEASIBLE_NODE
    assert "no node has all of gpu=a100, gpu=h100" in message


def test_only_nodes_of_the_queue_count_for_what_never_fits() -> None:
    head = group("headgroup", 1, CPUS)
    reason, message = refusal(held(gang("g", head, group("w", 3, GPUS)), A100))
    assert reason is Reason.NEVER_FITS
    assert message == (
        "the gang needs 12 nvidia.com/gpu in all; the nodes that could run it have 8 in all when "
        "empty (left out: 2 do not match nodeSelector gpu=a100 of the gang's queue): the gang "
        "waits until a node is added or changed"
    )

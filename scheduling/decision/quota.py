"""Refuses a gang whose demand exceeds the quota that its queue may still take."""

from scheduling.diagnosis.quota_refusals import over_quota
from scheduling.model.amounts import Amounts
from scheduling.model.verdict import Refusal
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.quota_tree import QuotaTree


def quota_refusal(order: QueueOrder, tree: QuotaTree, queue: str, demand: Amounts) -> Refusal:
    """Say which quota does not cover a demand of a queue now."""
    return over_quota(tree, queue, demand, order.used(queue), order.available(queue))

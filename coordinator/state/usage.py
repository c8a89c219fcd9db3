"""Brings the usage of queues with fair sharing up to date, before cycles and reports."""

from coordinator.state.known import Known
from runtime.controller.moment import Moment
from scheduling.model.amounts import exact_sum


def settle_usage(known: Known, moment: Moment) -> None:
    """Count what is held until now; plan the writes of statuses that are to tell of it.

    While a watch is down nothing is counted: what is held then is learned later.
    """
    if known.blind:
        return
    reports = known.reports
    for name in known.fair.settle(known.queues, known.quota, lambda: cluster_of(known), moment):
        soon = max(moment.now, reports.budget.again_at(name))
        reports.due[name] = min(reports.due.get(name, soon), soon)


def cluster_of(known: Known) -> dict[str, int]:
    """Return what all nodes have of each resource."""
    nodes = known.cache.columns()
    return dict(zip(nodes.resources, map(exact_sum, nodes.allocatable), strict=True))

"""Brings the average usage of queues with fair sharing up to date, before cycles and reports."""

from collections import Counter

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
    """Return what all nodes have of each resource; what classes give of it, at most, included."""
    nodes, index = known.cache.columns(), known.cache.devices.index
    found = Counter(dict(zip(nodes.resources, map(exact_sum, nodes.allocatable), strict=True)))
    if index.classes_of_resources:
        devices = sum(len(each.devices) for each in index.slices.values())
        found.update(dict.fromkeys(index.classes_of_resources, devices))
    return found

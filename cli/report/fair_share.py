"""Fair share over time: what namespaces used of a queue, and why its gangs stand where they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from cli.report.gangs import gathered_at
from kube.codec.fields import moment_of
from kube.objects.gang import Gang
from kube.objects.queues.fair_share import FairSharing
from kube.objects.queues.queue import Ageing, GangQueue

SHOWN = 10
"""So many namespaces are told of each queue where all queues are shown."""


class NamespaceShareReport(msgspec.Struct, frozen=True, rename="camel"):
    """What one namespace used, as its queue's status says it: averages by resource."""

    name: str
    share: str
    weight: int
    usage: Mapping[str, str]


def has_fair_share(queue: GangQueue) -> bool:
    """Say whether what was used over time counts in a queue, and something is known of it."""
    return queue.spec.fair_sharing is not None and queue.status.fair_share is not None


def share_of(queue: GangQueue) -> str:
    """Return the share that a queue used over time; empty where that does not count."""
    found = queue.status.fair_share
    return found.share if found is not None and has_fair_share(queue) else ""


def namespace_shares(queue: GangQueue) -> list[NamespaceShareReport]:
    """Report what each namespace used, the largest share first."""
    found = queue.status.fair_share
    if found is None or not has_fair_share(queue):
        return []
    weights = (queue.spec.fair_sharing or FairSharing()).namespace_weights
    return [
        NamespaceShareReport(each.name, each.share, weights.get(each.name, 1), each.usage)
        for each in found.namespaces
    ]


def reasons_of_order(queue: GangQueue, waiting: Iterable[Gang]) -> dict[str, str]:
    """Say of gangs, in their order, why each stands where it stands."""
    if not share_of(queue) or queue.spec.ordering == "FIFO":
        return {}
    shares = {each.name: each.share for each in namespace_shares(queue)}
    before: Counter[str] = Counter()
    found = {}
    for gang in waiting:
        namespace = gang.metadata.namespace
        share, ahead = shares.get(namespace, "0.00%"), before[namespace]
        said = f"{namespace} used {share}" + (f", and has {ahead} before it" if ahead else "")
        if _waited_too_long(queue, gang):
            said = "waited too long: as it arrived, before all that did not"
        found[f"{namespace}/{gang.metadata.name}"] = f"priority {gang.spec.priority}; {said}"
        before[namespace] += 1
    return found


def _waited_too_long(queue: GangQueue, gang: Gang) -> bool:
    """Say whether usage counts for a gang no more, as of when the status was written."""
    told, gathered = queue.status.fair_share, gathered_at(gang)
    if told is None or gathered is None:
        return False
    longest = (queue.spec.ageing or Ageing()).max_wait_seconds
    return moment_of(told.at) - gathered >= longest

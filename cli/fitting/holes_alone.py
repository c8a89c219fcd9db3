"""Judges a gang by the holes in the status of its queue, for callers that may not read nodes.

The pods of a gang are counted in pods of each size: one of 8 GPUs is two of 4. So many must fit at
once, or the gang does not. A gang that fits by this count may still lack processor, memory, labels
or tolerations: the answer is no, or not known.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kube.gang.holes import pods_needed
from kube.objects.queues.queue import GangQueue, QueueHole
from scheduling.diagnosis.holes import STATE_OF_NODE
from scheduling.model.constraints import Toleration
from scheduling.model.gang import PendingGang

NOT_JUDGED = "CPU, memory, labels, taints and the gangs that wait before it are not judged"


@dataclass(frozen=True, slots=True)
class Need:
    """How many pods of the size of a hole a gang needs at once."""

    hole: QueueHole
    pods: int


def needs(asked: PendingGang, queue: GangQueue | None) -> list[Need]:
    """Return what the minimum of a gang needs of each hole, the largest size first."""
    holes = queue.status.holes if queue is not None else ()
    groups = [(each.shape.amounts, each.count) for each in asked.minimum]
    found = (Need(each, pods_needed(each, groups)) for each in holes)
    return sorted((each for each in found if each.pods), key=lambda each: -each.hole.size)


def refusals(asked: PendingGang, queue: GangQueue | None) -> Iterator[str]:
    """Say what cannot fit, whatever the pods ask for beside GPUs; nothing where that is open."""
    if any(_goes_anywhere(each.shape.tolerations) for each in asked.minimum):
        return
    for each in needs(asked, queue):
        if each.pods > each.hole.at_most:
            yield (
                f"at most {_pods(each.hole.at_most, each.hole)} fit on the nodes of queue "
                f"{asked.queue}, and the gang needs {each.pods} at once"
            )


def _goes_anywhere(tolerations: Iterable[Toleration]) -> bool:
    """Say whether a pod may go to nodes that count as taking none, cordoned ones for example."""
    return any(
        each.effect != "NoExecute" and (not each.key or each.key.startswith(STATE_OF_NODE))
        for each in tolerations
    )


def remark(asked: PendingGang, queue: GangQueue | None) -> str:
    """Word what the holes show of a gang that they do not refuse; empty where they show nothing."""
    found = needs(asked, queue)
    if not found:
        return ""
    tight = [each for each in found if each.pods > each.hole.pods]
    said = [_tight(each) for each in tight[:1]] or [_ample(each) for each in found[:1]]
    return f"{said[0]}; {NOT_JUDGED}"


def _tight(need: Need) -> str:
    return (
        f"{_pods(need.hole.pods, need.hole)} fit on its nodes with the CPU and memory that is "
        f"typical beside a GPU, and the gang needs {need.pods} at once"
    )


def _ample(need: Need) -> str:
    return f"{_pods(need.hole.pods, need.hole)} fit on its nodes, and the gang needs {need.pods}"


def _pods(count: int, hole: QueueHole) -> str:
    return f"{count} {'pod' if count == 1 else 'pods'} of {hole.size} {hole.resource}"

"""Decides whether a gang requests nodes from the autoscaler, and when it tries again.

The ProvisioningRequest itself records the request and the number of tries. A failed one stays until
the next is due, so that another leader goes on where this one stopped.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.gang.attempts import Attempts
from coordinator.gang.pods.pod_sets import Standing
from kube.codec.observed_pod import ObservedPod
from kube.codec.provisioning import Answer, NodeRequest
from kube.objects.provisioning import MOST_POD_SETS
from kube.objects.queues.queue import Provisioning
from scheduling.model.gang import Group
from scheduling.model.verdict import Reason

FOR_ROOM = (Reason.INSUFFICIENT_RESOURCES, Reason.NEVER_FITS, Reason.NO_FEASIBLE_NODE)
"""The refusals that more nodes can end. Quota does not grow with nodes, nor does what is modelled;
of Undecided it is not known."""

ASK_AFTER = 5.0
"""Seconds for which a gang must have been refused: what ends meanwhile may make room."""

LONGEST_BACKOFF = 3600.0
NAME_LIMIT = 200


@dataclass(frozen=True, slots=True)
class WantedPods:
    """So many pods like one: an existing pod, or one that is foreseen.

    `labels` are those of nodes that the gang's queue holds such pods to.
    """

    pod_set: str
    count: int
    like: ObservedPod
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a gang asks for: pods that are to be placed together, by the rules of its queue."""

    rules: Provisioning
    pods: tuple[WantedPods, ...]

    @property
    def mark(self) -> str:
        """Return a short hash of all that is asked for."""
        pods = [
            (each.pod_set, each.count, _shape_key(each.like), each.labels) for each in self.pods
        ]
        said = self.rules.class_name, sorted(self.rules.parameters.items()), pods
        return hashlib.sha256(repr(said).encode()).hexdigest()[:12]

    @property
    def total(self) -> int:
        """Count the pods."""
        return sum(each.count for each in self.pods)


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done about the requests of a gang, and what is told of them.

    `ask` is the attempt to be made now, 0 for none; `waits` says that one was made and has not
    failed; `drop` are the requests that are to go;
    `again_at` (seconds since 1970) is when time alone has something to be done.
    """

    ask: int = 0
    waits: bool = False
    drop: tuple[NodeRequest, ...] = ()
    text: str = ""
    again_at: float | None = None


@dataclass(slots=True)
class NodeRequestState:
    """The requests for nodes of one gang. Written by `reconcile.node_requests` and `intake`.

    `refused_since` is since when the gang is refused for room, `writing` are the names of requests
    with a write under way, `attempts` counts writes that failed in a row. `text` is what is told,
    and `again_at` (monotonic seconds) when time alone has something to be done.
    """

    refused_since: float | None = None
    writing: set[str] = field(default_factory=set)
    attempts: Attempts = field(default_factory=Attempts)
    text: str = ""
    again_at: float | None = None


def wanted_pods(groups: Iterable[Group], standing: Standing) -> tuple[WantedPods, ...]:
    """List the pods that a gang asks room for, by pod set and shape."""
    counts: dict[tuple[str, str], int] = {}
    shapes = {}
    for group in groups:
        kind = group.pod_set, group.shape.key
        counts[kind] = counts.get(kind, 0) + group.count
        shapes[kind] = group.shape
    like = _by_shape(standing)
    return tuple(
        WantedPods(kind[0], counts[kind], like[kind], shapes[kind].restrictions.queue)
        for kind in sorted(counts)
        if kind in like
    )


def _by_shape(standing: Standing) -> Mapping[tuple[str, str], ObservedPod]:
    """Return a waiting pod of each pod set and shape, the first by name."""
    found: dict[tuple[str, str], ObservedPod] = {}
    for each in standing:
        for pod in sorted(each.waiting, key=lambda pod: pod.name, reverse=True):
            found[each.terms.name, _shape_key(pod)] = pod
    return found


def _shape_key(pod: ObservedPod) -> str:
    shape = pod.member.shape if pod.member is not None else None
    return shape.key if shape is not None else ""


def request_name(gang: str, mark: str, attempt: int) -> str:
    """Return the name of a request: of another one for each attempt."""
    return f"{gang[:NAME_LIMIT].rstrip('-.')}-{mark}-{attempt}"


def next_step(asks: Wanted | None, seen: Sequence[NodeRequest], wall: float) -> Step:
    """Say what follows from what a gang asks for and what was asked; `wall`: seconds since 1970.

    At most one request is left. One that asks for something else goes first.
    """
    if asks is None:
        return Step(drop=tuple(each for each in seen if not each.ending))
    if len(asks.pods) > MOST_POD_SETS:
        text = (
            f"nodes are not asked for: its pods are of {len(asks.pods)} kinds; "
            f"allowed in a ProvisioningRequest: {MOST_POD_SETS}"
        )
        return Step(drop=tuple(each for each in seen if not each.ending), text=text)
    mine = [each for each in seen if each.asked == asks.mark and not each.ending]
    last = max(mine, key=lambda each: each.attempt, default=None)
    others = tuple(each for each in seen if each is not last and not each.ending)
    if last is None:
        return Step(ask=1, drop=others, text=f"nodes for {_pods(asks)} are asked for")
    if last.answer is not Answer.FAILED:
        return Step(waits=True, drop=others, text=_told(asks, last))
    pause = backoff(asks.rules.backoff_seconds, last.attempt)
    due = last.answered_at + pause
    text = (
        f"{_told(asks, last)}; asked again {pause:.0f} s after that, as attempt {last.attempt + 1}"
    )
    if wall < due:
        return Step(drop=others, text=text, again_at=due)
    return Step(ask=last.attempt + 1, drop=(*others, last), text=text)


def put_off(step: Step, queue: str, again_at: float) -> Step:
    """Return the step of a gang for which no quota is left beside what others have asked for.

    A request that failed stays, for it counts the attempts.
    """
    text = f"nodes are not asked for yet: what others have asked for fills the quota of {queue}"
    dropped = tuple(each for each in step.drop if each.answer is not Answer.FAILED)
    return Step(drop=dropped, text=text, again_at=again_at)


def backoff(first: float, attempt: int) -> float:
    """Return the seconds between the end of an attempt, from 1, and the next one."""
    return min(LONGEST_BACKOFF, first * 2.0 ** min(attempt - 1, 16))


def _told(asks: Wanted, request: NodeRequest) -> str:
    said = request.said or "no answer yet"
    what = f"ProvisioningRequest {request.name} asks for nodes for {_pods(asks)}"
    return f"{what}; the autoscaler says: {said}"


def _pods(asks: Wanted) -> str:
    return "1 pod" if asks.total == 1 else f"{asks.total} pods"

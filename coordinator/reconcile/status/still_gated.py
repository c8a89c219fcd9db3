"""Says, for a gang that already has its place, why some of its pods still keep their gate.

Such pods are workers that an autoscaler added, for example, or pods that came after annotations of
the gang became unusable. Each pod set reports how many of its pods wait, and for which reason.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from coordinator.gang.demand import NotReady
from coordinator.gang.pods.growth import growth_of, missing_in_words
from coordinator.gang.pods.pod_sets import PodSetStanding
from coordinator.gang.view import GangView
from kube.codec.observed_pod import ObservedPod
from kube.ray.gang_terms import GangTerms
from scheduling.model.holder import gang_holder
from scheduling.model.verdict import Reason

KUBERAY_DELETES = "KubeRay deletes the others"
NEVER_RELEASED = "Muster releases no others"
GATES_NAMED = 3
SHORT = 160
"""Characters of what a single pod set says: there may be a thousand of them."""


@dataclass(frozen=True, slots=True)
class Waits:
    """So many gated pods of one pod set without a slot, and why they wait."""

    pod_set: str
    pods: int
    reason: Reason
    message: str


def outside(terms: GangTerms | None, pods: Iterable[ObservedPod]) -> dict[str, int]:
    """Count the gated pods of pod sets that the terms do not have; by name of the set."""
    known = {each.name for each in terms.pod_sets} if terms is not None else set()
    gated = (pod.member.pod_set for pod in pods if pod.member and pod.gated and pod.alive)
    return dict(Counter(name for name in gated if name not in known))


def waiting(view: GangView) -> tuple[Waits, ...]:
    """Return why gated pods without a slot wait, by pod set and in the order of the sets."""
    said = [each for pod_set in view.survey.standing for each in _of(pod_set, view)]
    said += [Waits(name, n, *_unasked(view, 0)) for name, n in sorted(view.survey.outside.items())]
    return tuple(each for each in said if each.pods)


def in_words(waits: Sequence[Waits], view: GangView) -> str:
    """Say how many pods of the gang wait, and why."""
    pods = sum(each.pods for each in waits)
    exist = sum(each.exist for each in view.survey.standing) + sum(view.survey.outside.values())
    reasons = "; ".join(dict.fromkeys(each.message for each in waits))
    return f"{pods} of {exist} pods {'waits' if pods == 1 else 'wait'}: {reasons}"


def short(message: str) -> str:
    """Cut a message to what a single pod set may say."""
    return message if len(message) <= SHORT else f"{message[: SHORT - 1]}…"


def _of(pod_set: PodSetStanding, view: GangView) -> Iterator[Waits]:
    name, terms = pod_set.terms.name, pod_set.terms
    yield from _held_by_others(pod_set)
    excess = min(len(pod_set.waiting), max(0, pod_set.exist - terms.count))
    yield Waits(name, excess, *_unasked(view, terms.count))
    yield Waits(name, len(pod_set.waiting) - excess, *_asked(view, pod_set))


def _held_by_others(pod_set: PodSetStanding) -> Iterator[Waits]:
    with_slot = [pod for pod, _ in pod_set.with_slot if pod.foreign_gates]
    held = [*pod_set.blocked, *with_slot]
    gates = sorted({gate for pod in held for gate in pod.foreign_gates})
    more = f" and {len(gates) - GATES_NAMED} more" if len(gates) > GATES_NAMED else ""
    message = f"held by gates of others: {', '.join(gates[:GATES_NAMED])}{more}"
    yield Waits(pod_set.terms.name, len(held), Reason.FOREIGN_GATES, message)


def _unasked(view: GangView, count: int) -> tuple[Reason, str]:
    """Word the reason of pods beyond the requested number, or of a gang whose terms broke since."""
    if view.understood.problem:
        return Reason.MISCONFIGURED, view.understood.problem
    asked = view.queueing.asked
    if isinstance(asked, NotReady) and (asked.is_final or asked.reason is Reason.SUSPENDED):
        return asked.reason, asked.message
    pods = "1 pod" if count == 1 else f"{count or 'no'} pods"
    kind = gang_holder(view.key).kind
    if kind == "RayCluster":
        return Reason.EXCESS_PODS, f"the {kind} asks for {pods} of the group; {KUBERAY_DELETES}"
    return Reason.EXCESS_PODS, f"the {kind} asks for {pods} of the pod set; {NEVER_RELEASED}"


def _asked(view: GangView, pod_set: PodSetStanding) -> tuple[Reason, str]:
    """Word the reason of requested pods: what hinders the request, or how the cycle answered it."""
    if isinstance(view.queueing.asked, NotReady):
        return view.queueing.asked.reason, view.queueing.asked.message
    for refusal in (view.queueing.refusal, view.queueing.left_out):
        if refusal is not None:
            return refusal.reason, refusal.message
    terms, growth = view.understood.terms, growth_of(view.survey.standing)
    if terms is not None and terms.grows_whole and not growth.is_complete:
        return Reason.GANG_INCOMPLETE, missing_in_words(growth)
    hosts, pods = pod_set.terms.hosts, len(pod_set.waiting)
    if hosts > 1 and pods % hosts:
        said = f"a replica of {pod_set.terms.name} starts whole, with all of its {hosts} pods"
        return Reason.GANG_INCOMPLETE, said
    return Reason.PENDING, "waiting for the next cycle"

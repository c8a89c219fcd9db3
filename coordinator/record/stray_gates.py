"""Writes an Event on pods that have Muster's gate and belong to no gang.

A person wrote the gate into a template, or the pod stayed when its RayCluster went. Nothing
removes the gate from such a pod, and no Gang could report it. The next leader writes the Event once
more, because the list of reported pods lives as long as a term.
"""

from dataclasses import dataclass, field

from coordinator.messages.actions import EmitEvent, Regarding
from coordinator.record.event_budget import renewal_of
from kube.codec.observed_pod import STRAYS, ObservedPod
from kube.objects import names
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason

PODS = 10
"""So many pods of a namespace are told of in a span of time: a Deployment may have thousands."""

SPAN = 60.0
"""Its seconds."""

MESSAGE = (
    f"the scheduling gate {names.GATE} is on this pod, and no RayCluster made it: nothing takes "
    "the gate off, so it never starts; delete the pod, and leave the gate out of what makes it"
)


@dataclass(slots=True)
class _Pod:
    """Such a pod, and when it was told of last (monotonic seconds)."""

    name: str
    told: float = float("-inf")


@dataclass(slots=True)
class _Span:
    """When it began (monotonic seconds), and of how many more pods is to be told in it."""

    since: float
    left: int = PODS


@dataclass
class StrayGates:
    """Such pods by namespace and uid, and how many of a namespace were told of lately."""

    _pods: dict[str, dict[str, _Pod]] = field(default_factory=dict)
    _spans: dict[str, _Span] = field(default_factory=dict)

    def seen(self, pod: ObservedPod) -> GangKey | None:
        """Take in a pod as it is now; returns what is to be looked at."""
        if not pod.gated_for_none or not pod.alive:
            self.gone(pod.namespace, pod.uid)
            return None
        self._pods.setdefault(pod.namespace, {}).setdefault(pod.uid, _Pod(pod.name))
        return GangKey(pod.namespace, STRAYS)

    def gone(self, namespace: str, uid: str) -> None:
        """Forget a pod."""
        pods = self._pods.get(namespace)
        if pods is not None and pods.pop(uid, None) is not None and not pods:
            del self._pods[namespace]

    def keys(self) -> set[GangKey]:
        """Return what is to be looked at when a term begins."""
        return {GangKey(namespace, STRAYS) for namespace in self._pods}

    def news(self, key: GangKey, now: float) -> list[EmitEvent]:
        """Return what is to be told at once of the pods of a namespace."""
        at = self.due_at(key)
        if at is None or at > now:
            return []
        pods, span = self._pods[key.namespace], self._span(key.namespace, now)
        due = sorted((_due(uid, pod), pod.name, uid) for uid, pod in pods.items())
        chosen = [(name, uid) for at, name, uid in due[: span.left] if at <= now]
        span.left -= len(chosen)
        for _, uid in chosen:
            pods[uid].told = now
        return [_event(key, name, uid) for name, uid in chosen]

    def due_at(self, key: GangKey) -> float | None:
        """When the next of them may be told of; None where there is none.

        Where no more is told in this span, none of what may be thousands is asked.
        """
        pods = self._pods.get(key.namespace) if key.name == STRAYS else None
        if pods is None:
            return None
        span = self._spans.get(key.namespace)
        if span is not None and not span.left:
            return span.since + SPAN
        return min(_due(uid, pod) for uid, pod in pods.items())

    def forget_told(self) -> None:
        """Begin anew with telling."""
        self._spans.clear()
        for pods in self._pods.values():
            for pod in pods.values():
                pod.told = float("-inf")

    def _span(self, namespace: str, now: float) -> _Span:
        """Return the span that lasts, or begin one.

        It outlasts its pods: whoever makes and deletes them in a loop has no more told.
        """
        spans = self._spans.items()
        self._spans = {name: each for name, each in spans if now < each.since + SPAN}
        return self._spans.setdefault(namespace, _Span(now))


def _due(uid: str, pod: _Pod) -> float:
    return pod.told + renewal_of(uid)


def _event(key: GangKey, name: str, uid: str) -> EmitEvent:
    on = Regarding("v1", "Pod", name, uid)
    return EmitEvent(key, uid, warning=True, reason=Reason.NO_GANG, message=MESSAGE, regarding=on)

"""Keeps pods of others off nodes where they would take devices that are decided for gangs.

A pod passes where kube-scheduler's choice for it leaves enough for what is decided there, in the
order in which that comes. Pods that were passed before have their devices, though no object tells
of them yet. Where any of this is not known, the pod is kept off: it is tried again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from extender.devices.coming import Coming, PlacedGang, coming_to_nodes
from kube.codec.observed_pod import ObservedPod
from kube.devices.device_facts import DeviceFact
from kube.devices.device_index import DeviceIndex
from kube.devices.known_devices import known_devices
from kube.devices.selectors import CelSelectors
from reservation.claims import claims_of
from scheduling.devices.keeping import OnTheWay, leaves_enough
from scheduling.devices.node_index import NodeDevicesIndex
from scheduling.devices.steps import OutOfSteps, StepBudget
from scheduling.model.amounts import Mask, Positions
from scheduling.model.gang import GangKey
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims

NODE_STEPS = 10_000
"""What judging nodes that are alike may take."""

LOOK = 50
"""Steps for a group of nodes, beside those of the search."""

STEPS = 100_000
"""What one question may take, about 0.3 s. What was looked at is remembered for the next one."""


@dataclass(frozen=True, slots=True)
class InFlightClaims:
    """A pod that was passed and has claims: at which of the nodes that are asked about it may be.

    `surely` says that it was passed for no other node than one.
    """

    pod: ObservedPod
    at: Mask
    surely: bool


class DeviceGuard:
    """What is known of devices, and of the pods that ask for some; written by one owner."""

    def __init__(self, gangs: Mapping[GangKey, PlacedGang]) -> None:
        self.is_current: Callable[[], bool] = lambda: True
        """Whether the watches of devices tell all; whoever runs them says so."""
        self._index, self._selectors = DeviceIndex(), CelSelectors()
        self._gangs = gangs
        self._pods: dict[str, ObservedPod] = {}
        self._members: defaultdict[GangKey, dict[str, ObservedPod]] = defaultdict(dict)
        self._coming: Mapping[str, Coming] | None = {}
        self._nodes: NodeDevicesIndex | None = None
        self._news = False

    # ---- what comes and goes

    def put_pod(self, pod: ObservedPod) -> None:
        """Take in a pod that asks for devices by claim."""
        self.remove_pod(pod.uid)
        self._pods[pod.uid] = pod
        if pod.member is not None:
            self._members[pod.member.gang][pod.uid] = pod
        self._changed()

    def remove_pod(self, uid: str) -> None:
        """Forget a pod, if it is one of these."""
        known = self._pods.pop(uid, None)
        if known is None:
            return
        if known.member is not None:
            key = known.member.gang
            del self._members[key][uid]
            if not self._members[key]:
                del self._members[key]
        self._changed()

    def gang_changed(self, key: GangKey) -> None:
        """Look at the slots of a gang anew."""
        if key in self._members:
            self._changed()

    def put(self, fact: DeviceFact) -> None:
        """Take in a slice, class, claim, template or rule."""
        self._index.put(fact)
        self._changed()

    def drop(self, fact: DeviceFact) -> None:
        """Forget one."""
        self._index.drop(fact)
        self._changed()

    def see(self, kind: type[DeviceFact]) -> None:
        """Answer by the facts of a kind: all were told."""
        self._index.see(kind)
        self._changed()

    def lose_sight(self, kind: type[DeviceFact]) -> None:
        """Pass nothing by facts that may be out of date."""
        self._index.lose_sight(kind)

    def _changed(self) -> None:
        self._coming, self._news = None, True

    def take_news(self) -> set[str]:
        """Return the nodes with decided devices if anything has changed since the last call."""
        news, self._news = self._news, False
        return set(self.coming) if news else set()

    @property
    def coming(self) -> Mapping[str, Coming]:
        """Return the pods that are to be allocated devices, by node."""
        if self._coming is None:
            others = (pod for pod in self._pods.values() if not self._is_of_a_gang(pod))
            self._coming = coming_to_nodes(self._of_gangs(), others, self._index)
        return self._coming

    def _of_gangs(self) -> Iterator[tuple[GangKey, PlacedGang, list[ObservedPod]]]:
        for key in self._members.keys() & self._gangs.keys():
            pods = self._members[key].values()
            yield key, self._gangs[key], [pod for pod in pods if self._is_of_a_gang(pod)]

    def _is_of_a_gang(self, pod: ObservedPod) -> bool:
        gang = self._gangs.get(pod.member.gang) if pod.member is not None else None
        return (
            gang is not None
            and pod.member is not None
            and (gang.cluster_uid == pod.member.cluster_uid)
        )

    # ---- what is asked

    def claims(self, pod: ObservedPod) -> Claims | None:
        """Return what a pod is to be allocated; None where not all of its claims are known."""
        return claims_of(pod, self._index)

    def kept_from(
        self,
        pod: ObservedPod,
        nodes: tuple[Node, ...],
        at: Positions,
        in_flight: Iterable[InFlightClaims] | None,
    ) -> Mask:
        """Say at which of these nodes devices are kept from the pod.

        `in_flight` are pods that were passed and are not seen bound; None where not all are known.
        """
        kept = np.zeros(len(at), dtype=np.bool_)
        if not (pod.claims and self.coming):
            return kept
        here = [n for n, each in enumerate(at.tolist()) if nodes[each].name in self.coming]
        asked = self.claims(pod)
        if asked == ():
            return kept
        kept[here] = True
        if asked is None or in_flight is None or self._index.unseen or not self.is_current():
            return kept
        names = {n: nodes[int(at[n])].name for n in here}
        steps = StepBudget(STEPS)
        for there, where in self._on_the_way(names, in_flight).items():
            places = np.array(where, dtype=np.intp)
            passed = self._passes(asked, there, nodes, at[places], steps)
            kept[places[passed]] = False
        return kept

    def _on_the_way(
        self, names: Mapping[int, str], in_flight: Iterable[InFlightClaims]
    ) -> Mapping[OnTheWay, list[int]]:
        """Put places together to which pods with the same claims come."""
        passed: defaultdict[int, dict[str, Claims]] = defaultdict(dict)
        perhaps: defaultdict[int, list[Claims]] = defaultdict(list)
        for each in in_flight:
            claims = self.claims(each.pod) or ()
            for n in np.flatnonzero(each.at).tolist():
                if each.surely:
                    passed[n][each.pod.uid] = claims
                elif claims:
                    perhaps[n].append(claims)
        found: defaultdict[OnTheWay, list[int]] = defaultdict(list)
        for n, name in names.items():
            found[self.coming[name].beside(passed[n], perhaps[n])].append(n)
        return found

    def _passes(
        self,
        asked: Claims,
        there: OnTheWay,
        nodes: tuple[Node, ...],
        at: Positions,
        steps: StepBudget,
    ) -> Mask:
        """Judge nodes to which the same pods come, one of those that are alike for all."""
        index, kinds = self._index_of_nodes(), tuple(dict.fromkeys((asked, *there.kinds)))
        passes = np.zeros(len(at), dtype=np.bool_)
        try:
            numbers = index.alike(kinds, nodes, at, steps)
            for number in np.unique(numbers).tolist():
                alike = numbers == number
                one = index.of(nodes[int(at[np.flatnonzero(alike)[0]])])
                budget = StepBudget(min(NODE_STEPS, steps.left))
                before = budget.left
                passes[alike] = leaves_enough(asked, there, one, index.rules, budget)
                steps.spend(LOOK + before - budget.left)
        except OutOfSteps:
            pass  # what was not judged does not pass
        return passes

    def _index_of_nodes(self) -> NodeDevicesIndex:
        facts = known_devices(self._index, self._selectors)
        known = self._nodes
        self._nodes = NodeDevicesIndex(facts) if known is None else known.renewed(facts)
        return self._nodes

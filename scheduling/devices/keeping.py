"""Judges whether placed pods still get their devices on a node if another pod is bound first.

Devices cannot be reserved: kube-scheduler allocates for the other pod from all free devices. So the
other pod is kept off the node unless it leaves enough devices, in the order of the placed pods.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from scheduling.devices.allocator import allocate
from scheduling.devices.counting import counting
from scheduling.devices.mixes import NodeMixes, mixes_with_room
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.outcome import Allocated
from scheduling.devices.selection import Rules
from scheduling.devices.steps import OutOfSteps, StepBudget
from scheduling.model.shape.restrictions import Claims

Wave = tuple[tuple[Claims, int], ...]
"""Pods that are released together: how many with which claims."""


@dataclass(frozen=True, slots=True)
class OnTheWay:
    """Pods whose devices no object tells of yet, by their claims.

    `allocated` got theirs on the node, in this order; `perhaps` did, if they are there at all.
    `waves` are to get theirs, one wave after the other. `unread` says that some of their claims are
    not known.
    """

    waves: tuple[Wave, ...]
    allocated: tuple[Claims, ...] = ()
    perhaps: tuple[Claims, ...] = ()
    unread: bool = False

    @property
    def kinds(self) -> tuple[Claims, ...]:
        """Return the claims of all of them, each once."""
        decided = (claims for wave in self.waves for claims, _ in wave)
        return tuple(dict.fromkeys((*decided, *self.allocated, *self.perhaps)))


def leaves_enough(
    asked: Claims, there: OnTheWay, node: NodeDevices, rules: Rules, steps: StepBudget
) -> bool:
    """Say whether a pod leaves devices for all that is decided; False where that is not sure."""
    try:
        return not there.unread and _leaves_enough(asked, there, node, rules, steps)
    except OutOfSteps:
        return False


def _leaves_enough(
    asked: Claims, there: OnTheWay, node: NodeDevices, rules: Rules, steps: StepBudget
) -> bool:
    decided = [pods for wave in there.waves for pods in wave]
    counts = counting((asked, *there.kinds), node, rules, steps)
    if counts is not None:
        before = [(claims, 1) for claims in (*there.allocated, *there.perhaps, asked)]
        return counts.leaves(decided, before)
    if there.perhaps or not rules.features.pools_in_order:
        return False
    after = _after((*there.allocated, asked), node, rules, steps)
    return after is not None and _hold(there.waves, after, rules, steps)


def _after(
    pods: Iterable[Claims], node: NodeDevices, rules: Rules, steps: StepBudget
) -> NodeDevices | None:
    """Return the node once the pods were allocated theirs, in this order; None if one is not."""
    in_use = node.in_use
    for claims in pods:
        found = allocate(claims, node.pools, in_use, rules, steps)
        if not isinstance(found, Allocated):
            return None
        in_use = in_use.plus(found.given)
    return replace(node, in_use=in_use)


def _hold(waves: Sequence[Wave], node: NodeDevices, rules: Rules, steps: StepBudget) -> bool:
    """Say whether all pods get devices, in any order or wave after wave."""
    groups = tuple(claims for wave in waves for claims, _ in wave)
    wanted = tuple(count for wave in waves for _, count in wave)
    room = mixes_with_room(wanted, [()] * len(wanted), (), steps)
    mixes = NodeMixes(groups, node, room, rules, steps)
    if wanted in mixes.in_any_order:
        return True
    one_by_one = all(len(wave) == 1 for wave in waves)
    return one_by_one and wanted in mixes.in_order(range(len(groups)))

"""Holds the parts of scheduler profiles that a verdict depends on.

A plugin that a profile disables is asked all the same, with the exceptions in `RELAXED`: that
refuses more than the scheduler would, and never less.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduling.model.constraints import NodeTerm

DEFAULT_SCHEDULER = "default-scheduler"

INTER_POD_AFFINITY, NODE_PORTS, POD_TOPOLOGY_SPREAD = (
    "InterPodAffinity",
    "NodePorts",
    "PodTopologySpread",
)

RELAXED = frozenset((INTER_POD_AFFINITY, NODE_PORTS, POD_TOPOLOGY_SPREAD))
"""Filter plugins that are not asked where the profile disables them: their fields have no effect
then."""

MOST_SPREADS = 16
"""Constraints of one pod that are read: each costs a look at all nodes with every pod placed."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The settings of a scheduler that decide which nodes it refuses for a pod.

    `added` are ORed terms of which each node must match one, beside what the pod asks for; None
    where there are none. `spreads_by_default` says that topology spread constraints bind pods which
    have none of their own. `off` are those of `RELAXED` that are switched off.
    """

    name: str = DEFAULT_SCHEDULER
    added: tuple[NodeTerm, ...] | None = None
    spreads_by_default: bool = False
    off: frozenset[str] = frozenset()


Profiles = Mapping[str, Profile]
STOCK: Profiles = {DEFAULT_SCHEDULER: Profile()}

"""Holds the settings of the state machine as a value that recordings can store and restore."""

from dataclasses import dataclass

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.nominations import Guard
from coordinator.gang.priority import AllowedClasses
from coordinator.messages.clock import Patience
from coordinator.queues.waiting_limit import WaitingLimit
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from kube.codec.profiles.scheduler_profiles import Profiles
from scheduling.diagnosis.holes import GpuPools


@dataclass(frozen=True, slots=True)
class StateSettings:
    """All of the settings that an answer of the state machine can depend on.

    `home` is the namespace of Muster, `gates_off` the feature gates that kube-scheduler runs
    without. None has a default: a recording names all of them, so that it means the same to a
    release with other defaults.
    """

    patience: Patience
    allowed: AllowedClasses
    home: str
    waiting_per_namespace: int
    profiles: Profiles
    guard: Guard
    gpu_pools: GpuPools
    may_ask_for_nodes: bool | None
    gates_off: tuple[str, ...]

    def build(self) -> CoordinatorState:
        """Return a state machine that knows nothing yet."""
        known = Known(
            self.patience,
            self.allowed,
            cache=ClusterCache(
                self.home, may_ask_for_nodes=self.may_ask_for_nodes, gates_off=self.gates_off
            ),
            waiting_limit=WaitingLimit(self.waiting_per_namespace),
            profiles=self.profiles,
            guard=self.guard,
            gpu_pools=self.gpu_pools,
        )
        return CoordinatorState(known)

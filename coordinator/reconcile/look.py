"""Defines one look at a gang: what its steps read, and what each of them returns.

A step brings one part of the gang's view up to date and returns the writes that are missing. Where
it changes the placement, or which pods are members, it says so: the gang is then surveyed again.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.cluster.bind_refusals import Refusals
from coordinator.cluster.cache import ClusterCache
from coordinator.gang.claims.slots import DevicesLeft
from coordinator.gang.held_start.foresight import Foresee
from coordinator.gang.held_start.quota_turns import QuotaTurns
from coordinator.gang.nominations import Guard, Pace
from coordinator.gang.priority import AllowedClasses
from coordinator.gang.start_window import Window
from coordinator.gang.view import GangView
from coordinator.messages.actions import Action
from coordinator.messages.clock import Patience
from coordinator.queues.node_quota import NodeQuota
from coordinator.queues.registry import QueueRegistry
from coordinator.reconcile.surveying import take_survey
from coordinator.record.urgency import ClusterActivity
from coordinator.record.write_lines import WriteLines
from kube.codec.observed_pod import ObservedPod
from kube.codec.profiles.scheduler_profiles import Profiles
from kube.gang.source import GangSource
from kube.objects.queues.queue import Timeouts
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything beside the view that a gang's next step depends on."""

    cache: ClusterCache
    refusals: Refusals
    epoch: int
    patience: Patience
    moment: Moment
    activity: ClusterActivity
    sighted: bool
    inherited: frozenset[str]
    """The uids of the pods that an earlier leader has seen gated, and may be releasing."""
    allowed: AllowedClasses
    """The priority classes that may raise a gang above its pods."""
    window: Window
    """The gangs that are being started."""
    queues: QueueRegistry
    lines: WriteLines
    """The gangs whose status waits for its turn to be written."""
    foresee: Foresee
    """Works out the pods of a RayCluster before they exist."""
    profiles: Profiles
    views: Mapping[GangKey, GangView]
    """The views of all gangs, of which a step reads whether another gang waits."""
    decided: bool
    """A cycle of this term has decided."""
    misnominated: Mapping[GangKey, frozenset[str]]
    """By gang the nodes on which nothing is released until nominations to them are taken back."""
    reserved: Container[str]
    """The nodes on which any gang reserves room."""
    pace: Pace
    """How many nominations may be written in this second."""
    turns: QuotaTurns
    """Whose turn it is where gangs share a ResourceQuota."""
    node_quota: NodeQuota
    """What gangs have asked an autoscaler for, by their queues."""
    devices_left: DevicesLeft
    """Whether pods that are to be released to a node still find the devices that they claim."""
    guard: Guard = Guard.NONE
    scheduler: str = ""
    """The kube-scheduler that is told of nominations; empty where it is not known."""


@dataclass(slots=True)
class Look:
    """One look at a gang. `pods` are its members, `before` and `planned_before` what it had."""

    view: GangView
    source: GangSource
    scene: Scene
    pods: list[ObservedPod] = field(init=False)
    before: Placement | None = field(init=False)
    planned_before: Placement | None = field(init=False)
    actions: list[Action] = field(default_factory=list)
    ends_less: bool = False
    """What was to end does not, or has ended: a cycle may choose otherwise now."""

    def __post_init__(self) -> None:
        self.pods = self.scene.cache.members(self.view.key, self.view.cluster_uid)
        self.before = self.view.reservation.placement
        self.planned_before = self.view.queueing.planned

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.scene.moment.now

    @property
    def timeouts(self) -> Timeouts:
        """What the gang's queue says of starts."""
        terms = self.view.understood.terms
        return self.scene.queues.timeouts(terms.queue if terms is not None else "")

    @property
    def create_seconds(self) -> int:
        """For how long room is kept for pods that are still to be created."""
        return self.timeouts.create_seconds


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a step returns: the writes that are missing, and whether to survey the gang again."""

    actions: Sequence[Action] = ()
    resurvey: bool = False


NOTHING_DONE = StepResult()
SURVEY_AGAIN = StepResult(resurvey=True)

Step = Callable[[Look], StepResult]


def run(steps: Iterable[Step], look: Look) -> None:
    """Take the steps in order; the writes that they ask for are in `look.actions`."""
    for step in steps:
        done = step(look)
        look.actions += done.actions
        if done.resurvey:
            take_survey(look.view, look.pods)

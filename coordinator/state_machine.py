"""The one state machine of the coordinator: from events to the writes that follow from them.

Theory. There are two kinds of fact: what was observed (`ClusterCache`), and what the leader
decided (one `GangView` per gang, only while a term lasts). Events change them in `handle`, and
nowhere else. Afterwards every gang that an event concerned is brought forward by one list of steps
(`reconcile.advance`): look at where it stands, and ask for the next writes that are missing. It is
level-triggered: an event that is lost, doubled or late changes when something happens, never
what. The rules that keep a gang whole:

1. A decision takes its room at once (the reservation), is written down next, and pods are
   released only after the write was acknowledged.
2. A pod goes to the node of its slot. Once a release was sent, another node needs a fence first;
   so does a pod of a placement that an earlier term wrote.
3. One write of a gang's own object is under way at a time, each tested against the version seen.
4. While a watch is down nothing is decided and nothing released.
5. A term's end throws all views away; the next leader reads them off the records.
"""

from collections.abc import Iterable

from coordinator.messages.actions import Action
from coordinator.messages.events import CycleDue, Event
from coordinator.state.cycle.draining import drain
from coordinator.state.cycle.preemption_trials import settle_trials
from coordinator.state.cycle.run_cycle import decide
from coordinator.state.gang_looks import advance_dirty
from coordinator.state.intake.event_table import take
from coordinator.state.known import Known
from coordinator.state.manager_leases import stamp_leases
from coordinator.state.queue_changes import follow_queues
from coordinator.state.queue_reports import report
from coordinator.state.rayjob_resumption import resume_jobs
from kube.codec.observed_pod import ObservedPod
from runtime.controller.moment import Moment

INTAKE = "intake"
GANGS = "gangs"
QUEUE_REPORTS = "queue_reports"
"""The parts of a step, beside those of deciding."""


class CoordinatorState:
    """The one way to change what the coordinator knows."""

    def __init__(self, known: Known | None = None) -> None:
        self.known = known or Known()

    @property
    def next_wake(self) -> float | None:
        """When time alone will have something to be done."""
        return self.known.next_wake

    def handle(self, events: Iterable[Event], moment: Moment) -> list[Action]:
        """Take in what happened and say what is to be done."""
        known, due = self.known, False
        for event in events:
            take(event, known, moment)
            due = due or isinstance(event, CycleDue)
        agenda = known.agenda
        if not known.term.epoch:
            agenda.dirty.clear()
            agenda.cycle_wanted = False
            return []
        follow_queues(known, moment)
        if due:
            agenda.dirty |= agenda.late  # a decision must know where each pod is
        known.lap(INTAKE)
        actions = advance_dirty(known, moment)
        known.lap(GANGS)
        if due and not known.blind:
            decided = decide(known, moment)
            actions += advance_dirty(known, moment, [*drain(known, moment), *decided])
        actions += settle_trials(known, moment)
        actions += advance_dirty(known, moment)
        actions += resume_jobs(known, moment)
        actions += stamp_leases(known, moment)
        known.lap(GANGS)
        actions += report(known, moment)
        known.lap(QUEUE_REPORTS)
        _look_again_at_freed_quotas(known, moment)
        for key in known.turns.settle(moment.now):
            agenda.put_off(key, moment.now)
        agenda.cycle_wanted &= not known.blind  # the end of the blindness asks for one
        return actions

    @property
    def cycle_wanted(self) -> bool:
        """Whether a cycle may turn a verdict."""
        return self.known.agenda.cycle_wanted

    def has_fenced(self, epoch: int) -> bool:
        """Whether in this term no gated pod is left that an earlier leader may yet release.

        Not before the term's beginning was taken in: until then nothing is known of such pods.
        """
        known = self.known
        pods = known.cache.pods.values()
        left = any(pod.gated and _may_be_released(known, pod) for pod in pods)
        return known.term.epoch == epoch and not left


def _look_again_at_freed_quotas(known: Known, moment: Moment) -> None:
    """Requeue gangs that wait for a quota of which less is claimed now; no quota changed."""
    for key in known.cache.foreseen.take_freed():
        view = known.views.get(key)
        if view is not None and view.held.problem is not None:
            known.agenda.put_off(key, moment.now)


def _may_be_released(known: Known, pod: ObservedPod) -> bool:
    """By an earlier leader; not where its record says that it never decided anything."""
    if pod.uid not in known.term.inherited or pod.member is None:
        return False
    view = known.views.get(pod.member.gang)
    if view is None:
        return True
    return view.pod_writes.fences.get(pod.uid, pod.member.fence) != pod.member.fence

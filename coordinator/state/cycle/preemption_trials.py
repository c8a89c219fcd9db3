"""Tries a chosen preemption by dry run, and decides it if the API server would accept all.

A trial is of one waiting gang and of all parts that are to end for it: either all of them end, or
none. Each pod is asked for by a dry run, which takes nothing from a budget; then the disruption
budgets are read once, and must last for all of them together. Where one is refused it is kept for a
time, and the next cycle chooses others.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from coordinator.gang.eviction.budgets import Objection, objections
from coordinator.gang.eviction.endings import Ending, Probe, covered, replicas
from coordinator.gang.eviction.stop_method import Suspend
from coordinator.gang.view import GangView
from coordinator.messages.actions import Action, ReadBudgets
from coordinator.reconcile.eviction_dry_run import deletes_in_the_end, eviction_method
from coordinator.state.cycle.joining import plans_of
from coordinator.state.cycle.victims_together import victims
from coordinator.state.known import Known, Trial
from kube.codec.observed_pod import ObservedPod
from reservation.slots import slot_of
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.holder import gang_holder
from scheduling.model.placement import Placement
from scheduling.model.preemption import GangPart, Preemption
from scheduling.model.verdict import Reason

Chosen = Mapping[GangKey, tuple[str, ...]]
"""The replicas that are to end of each gang; none where the whole gang is."""


def propose(known: Known, preemptions: Sequence[Preemption], moment: Moment) -> None:
    """Begin the trials of what a cycle chose; one that is under way for the same goes on."""
    for preemptor in known.term.trials.keys() - {each.preemptor for each in preemptions}:
        drop_trial(known, preemptor)
    for each in preemptions:
        chosen = _chosen(known, each.parts)
        trial = known.term.trials.get(each.preemptor)
        if trial is None or trial.chosen != chosen:
            drop_trial(known, each.preemptor)
            _begin(known, each, chosen, moment)
        else:
            trial.plans = plans_of(known, each.preemptor, each.plan)


def settle_trials(known: Known, moment: Moment) -> list[Action]:
    """Decide what would be accepted, and give up what would be refused."""
    if known.blind:
        return []
    trials = list(known.term.trials.items())
    return [action for key, trial in trials for action in _settle(known, key, trial, moment)]


def _settle(
    known: Known, preemptor: GangKey, trial: Trial, moment: Moment
) -> Iterator[ReadBudgets]:
    probes = dict(_probes(known, preemptor))
    if not _waits(known, preemptor) or len(probes) < len(trial.chosen):
        drop_trial(known, preemptor)
        return
    if all(probe.passed for probe in probes.values()):
        yield from _hear_budgets(known, preemptor, trial, probes)
    if any(probe.objection for probe in probes.values()):
        _keep_refused(known, probes, moment)
        drop_trial(known, preemptor)
    elif all(probe.passed for probe in probes.values()) and trial.asked == trial.budgets.keys():
        drop_trial(known, preemptor)
        for key, probe in probes.items():
            _decide(known, known.views[key], probe.ending)
        for key in trial.plans.keys() & known.views.keys():
            note_plan(known, known.views[key], trial.plans[key])


def note_plan(known: Known, view: GangView, plan: Placement | None) -> None:
    """Note where a gang will be for which all that is in its way ends, and have it written."""
    if view.queueing.planned != plan:
        view.queueing.planned = plan
        known.room.update(view, known.cache.members(view.key, view.cluster_uid))
        known.agenda.dirty.add(view.key)


def drop_trial(known: Known, preemptor: GangKey) -> None:
    """End a trial; nothing was done for it."""
    trial = known.term.trials.pop(preemptor, None)
    for key in trial.chosen if trial is not None else ():
        if key in known.views:
            known.views[key].eviction.probes.pop(preemptor, None)


def _chosen(known: Known, parts: Iterable[GangPart]) -> Chosen:
    """Leave out what ends already; with its minimum a gang loses all its surplus."""
    names: defaultdict[GangKey, list[str]] = defaultdict(list)
    for key, replica in victims(known, parts):
        names[key].append(replica)
    return {key: () if "" in found else tuple(sorted(found)) for key, found in names.items()}


def _begin(known: Known, preemption: Preemption, chosen: Chosen, moment: Moment) -> None:
    preemptor = preemption.preemptor
    if not chosen or any(key not in known.views for key in chosen):
        return
    message = f"stopped for {gang_holder(preemptor)}{_rank(known, preemptor)}"
    cluster = known.cache.sources.get(preemptor)
    uid = cluster.metadata.uid if cluster is not None else ""
    known.term.trials[preemptor] = Trial(chosen, plans_of(known, preemptor, preemption.plan))
    for key, parts in chosen.items():
        ending = Ending(Reason.PREEMPTED, message, moment.stamp, preemptor, parts, uid)
        known.views[key].eviction.probes[preemptor] = Probe(ending)
        known.agenda.dirty.add(key)


def _rank(known: Known, preemptor: GangKey) -> str:
    view = known.views.get(preemptor)
    if view is None or view.understood.terms is None:
        return ""
    return f" (priority {view.understood.priority}, queue {view.understood.terms.queue})"


def _waits(known: Known, preemptor: GangKey) -> bool:
    """Say whether the gang that others are to end for waits for its minimum still."""
    view = known.views.get(preemptor)
    asked = view.question if view is not None else None
    return asked is not None and bool(asked.minimum)


def _probes(known: Known, preemptor: GangKey) -> Iterator[tuple[GangKey, Probe]]:
    for key in known.term.trials[preemptor].chosen:
        view = known.views.get(key)
        probe = view.eviction.probes.get(preemptor) if view is not None else None
        if probe is not None:
            yield key, probe


def _keep_refused(known: Known, probes: Mapping[GangKey, Probe], moment: Moment) -> None:
    for key, probe in probes.items():
        view, against = known.views[key], probe.objection
        if against is not None:
            for part in _refused_parts(known, view, probe.ending, against.uid):
                view.eviction.keep(part, against, moment.now)
        known.agenda.dirty.add(key)
    known.agenda.cycle_wanted = True


# ---- all evictions together


def _hear_budgets(
    known: Known, preemptor: GangKey, trial: Trial, probes: Mapping[GangKey, Probe]
) -> Iterator[ReadBudgets]:
    """Have the budgets read that the choice has to be within; note where it is not."""
    pods = {key: _to_evict(known, key, probe) for key, probe in probes.items()}
    bound = {key for key in pods if pods[key] and not _is_overruled(known, key)}
    for namespace in sorted({key.namespace for key in bound} - trial.asked):
        trial.asked.add(namespace)
        yield ReadBudgets(preemptor, namespace)
    if trial.asked != trial.budgets.keys():
        return
    for key in [key for key in bound if key.namespace in trial.unread]:
        because = f"its PodDisruptionBudgets cannot be read: {trial.unread[key.namespace]}"
        probes[key].objection = Objection(because)
    for key, objection in _objections(known, trial, pods, bound).items():
        probes[key].objection = objection


def _objections(
    known: Known,
    trial: Trial,
    pods: Mapping[GangKey, list[ObservedPod]],
    bound: Collection[GangKey],
) -> Mapping[GangKey, Objection]:
    """Return what budgets have against the choice; what ends whatever they say counts first."""
    chosen = {pod.uid for mine in pods.values() for pod in mine}
    others = [pod for key in pods if key not in bound for pod in pods[key]]
    others += [pod for pod in _being_evicted(known, trial.budgets) if pod.uid not in chosen]
    budgets = (each for found in trial.budgets.values() for each in found)
    return objections(budgets, {key: pods[key] for key in pods if key in bound}, others)


def _to_evict(known: Known, key: GangKey, probe: Probe) -> list[ObservedPod]:
    """Return the pods of a proposed ending that would be evicted; none of a RayJob's."""
    view = known.views[key]
    pods = known.cache.members(key, view.cluster_uid)
    found = covered(probe.ending, view.understood.terms, pods)
    return [pod for pod in found if pod.alive and probe.accepted.get(pod.uid)]


def _is_overruled(known: Known, key: GangKey) -> bool:
    return deletes_in_the_end(known.views[key], known.queues)


def _being_evicted(known: Known, namespaces: Collection[str]) -> Iterator[ObservedPod]:
    """Yield the pods whose end is decided, and that were not let go yet."""
    for view in known.views.values():
        if view.key.namespace not in namespaces or not view.eviction.endings:
            continue
        pods = known.cache.members(view.key, view.cluster_uid)
        for ending in view.eviction.endings:
            if not (ending.is_whole and _is_suspended(known, view)):
                found = covered(ending, view.understood.terms, pods)
                yield from (pod for pod in found if pod.alive)


def _is_suspended(known: Known, view: GangView) -> bool:
    """Say whether a gang ends by its RayJob, without an eviction."""
    terms, cluster = view.understood.terms, known.cache.sources.get(view.key)
    if cluster is None:
        return False
    method = eviction_method(known.cache, known.queues, cluster, terms.queue if terms else "")
    return isinstance(method, Suspend)


# ---- what is decided


def _refused_parts(known: Known, view: GangView, ending: Ending, uid: str) -> tuple[str, ...]:
    """Name the part whose eviction would be refused; all of them where that is not known."""
    if ending.is_whole:
        return ("",)
    pods = known.cache.members(view.key, view.cluster_uid)
    name = replicas(view.understood.terms, pods).get(uid)
    return (name,) if name is not None else ending.replicas


def _decide(known: Known, view: GangView, ending: Ending) -> None:
    """Have something end: it is written next, and carried out once that is acknowledged."""
    view.eviction.decide(ending)
    pods = known.cache.members(view.key, view.cluster_uid)
    for pod in () if ending.is_whole else covered(ending, view.understood.terms, pods):
        slot = slot_of(pod, pod.settled_on)
        if slot is not None:
            view.eviction.slots[pod.uid] = slot
    known.agenda.cycle_wanted = True
    known.agenda.dirty.add(view.key)

"""Has what a cycle chose to end tried, and decides it once all of it would be accepted.

A trial is of one waiting gang and of all parts that are to end for it: either all of them end, or
none. Where one is refused it is kept for a time, and the next cycle chooses others.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from coordinator.gang.eviction import Ending, Probe, covered, replicas
from coordinator.gang.view import GangView
from coordinator.messages.clock import Moment
from coordinator.queues.asking import question_of
from coordinator.state.known import Known
from reservation.slots import slot_of
from scheduling.model.gang import GangKey
from scheduling.model.preemption import GangPart, Preemption
from scheduling.model.verdict import Reason

Chosen = Mapping[GangKey, tuple[str, ...]]
"""The replicas that are to end of each gang; none where the whole gang is."""


def propose(known: Known, preemptions: Sequence[Preemption], moment: Moment) -> None:
    """Begin the trials of what a cycle chose; one that is under way for the same goes on."""
    for preemptor in known.term.trials.keys() - {each.preemptor for each in preemptions}:
        drop_trial(known, preemptor)
    for each in preemptions:
        chosen = _chosen(each.parts)
        if known.term.trials.get(each.preemptor) != chosen:
            drop_trial(known, each.preemptor)
            _begin(known, each.preemptor, chosen, moment)


def settle_trials(known: Known, moment: Moment) -> None:
    """Decide what would be accepted, and give up what would be refused."""
    if known.blind:
        return
    for preemptor in list(known.term.trials):
        probes = dict(_probes(known, preemptor))
        if not _waits(known, preemptor) or len(probes) < len(known.term.trials[preemptor]):
            drop_trial(known, preemptor)
        elif any(probe.refusal for probe in probes.values()):
            _keep_refused(known, probes, moment)
            drop_trial(known, preemptor)
        elif all(probe.passed for probe in probes.values()):
            drop_trial(known, preemptor)
            for key, probe in probes.items():
                _decide(known, known.views[key], probe.ending)


def drop_trial(known: Known, preemptor: GangKey) -> None:
    """End a trial; nothing was done for it."""
    for key in known.term.trials.pop(preemptor, {}):
        if key in known.views:
            known.views[key].eviction.probes.pop(preemptor, None)


def _chosen(parts: Iterable[GangPart]) -> Chosen:
    """Leave out what ends already; with its minimum a gang loses all its surplus."""
    names: defaultdict[GangKey, list[str]] = defaultdict(list)
    for part in parts:
        if not part.is_ending:
            names[part.gang].append(part.replica)
    return {key: () if "" in found else tuple(sorted(found)) for key, found in names.items()}


def _begin(known: Known, preemptor: GangKey, chosen: Chosen, moment: Moment) -> None:
    if not chosen or any(key not in known.views for key in chosen):
        return
    message = f"stopped for RayCluster {preemptor}{_rank(known, preemptor)}"
    known.term.trials[preemptor] = chosen
    for key, parts in chosen.items():
        ending = Ending(Reason.PREEMPTED, message, moment.stamp, preemptor, parts)
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
    asked = question_of(view) if view is not None else None
    return asked is not None and bool(asked.minimum)


def _probes(known: Known, preemptor: GangKey) -> Iterator[tuple[GangKey, Probe]]:
    for key in known.term.trials[preemptor]:
        view = known.views.get(key)
        probe = view.eviction.probes.get(preemptor) if view is not None else None
        if probe is not None:
            yield key, probe


def _keep_refused(known: Known, probes: Mapping[GangKey, Probe], moment: Moment) -> None:
    for key, probe in probes.items():
        for part in _refused_parts(known, known.views[key], probe) if probe.refusal else ():
            known.views[key].eviction.keep(part, probe.refusal, moment.now)
        known.agenda.dirty.add(key)
    known.agenda.cycle_wanted = True


def _refused_parts(known: Known, view: GangView, probe: Probe) -> tuple[str, ...]:
    """Name the part whose eviction would be refused; all of them where that is not known."""
    if probe.ending.is_whole:
        return ("",)
    pods = known.cache.members(view.key, view.cluster_uid)
    name = replicas(view.understood.terms, pods).get(probe.refused)
    return (name,) if name is not None else probe.ending.replicas


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

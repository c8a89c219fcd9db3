"""Has the pods that the templates tell of stand for those of a gang that waits."""

from dataclasses import replace

from coordinator.cluster.foreseen_gangs import MOST_OF_A_NAMESPACE, MOST_PODS
from coordinator.gang.held_start.foresight import Foresight, foresight_of, pods_of
from coordinator.reconcile.held_start.source_writes import as_it_is
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from kube.foreseen.gang import Outlook


def foresee(look: Look) -> StepResult:
    """Have foreseen pods stand for those of the gang in this look.

    One that a person suspended asks for none, and takes no part of what may be foreseen.
    """
    held, gangs, key = look.view.held, look.scene.cache.foreseen, look.view.key
    if as_it_is(look).stopped_by_user:
        gangs.drop(key)
        held.expected, look.pods = replace(held.expected, read=None, pods=()), []
        return NOTHING_DONE
    read_templates(look)
    before, pods = held.expected.pods, held.expected_pods(look.source, look.now)
    held.expected, look.pods = replace(held.expected, pods=pods), list(pods)
    if pods is not before or key not in gangs:
        look.scene.cache.foresee(key, look.pods)
    return NOTHING_DONE


def read_templates(look: Look) -> None:
    """Work out the pods of the source as it is, unless that was done."""
    expected, source, scene = look.view.held.expected, as_it_is(look), look.scene
    rules, classes = scene.cache.admission, scene.cache.priority_classes
    known = expected.read
    stale = known is None or known[0] is not source or known[1] != rules.edition
    if stale or expected.foresight.put_off:
        outlook = scene.foresee(source, rules.admission(look.view.key.namespace, classes))
        found, read = _foresight(look, outlook), (source, rules.edition)
        look.view.held.expected = replace(expected, foresight=found, read=read)


def have_nothing_asked(look: Look) -> StepResult:
    """Answer at once whether the gang can be stopped: there is no pod to ask the API server for."""
    for probe in look.view.eviction.probes.values():
        probe.passed = True
    return NOTHING_DONE


def _foresight(look: Look, outlook: Outlook) -> Foresight:
    """List the pods, unless there would be too many of all held gangs."""
    count = pods_of(outlook)
    if look.scene.cache.foreseen.takes(look.view.key, count):
        return foresight_of(outlook, look.scene.profiles)
    return Foresight(
        put_off=f"its pods ({count}) are judged when fewer pods of held gangs wait; allowed: "
        f"{MOST_OF_A_NAMESPACE} in a namespace, {MOST_PODS} in all"
    )

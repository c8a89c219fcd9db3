"""Has the pods that the templates tell of stand for those of a gang that waits."""

from coordinator.cluster.foreseen_gangs import MOST_OF_A_NAMESPACE, MOST_PODS
from coordinator.gang.held_start.foresight import Foresight, foresight_of, pods_of
from coordinator.reconcile.held_start.source_writes import as_it_is
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from kube.foreseen.gang import Outlook


def foresee(look: Look) -> StepResult:
    """Have foreseen pods stand for those of the gang in this look.

    One that a person suspended asks for none, and takes no part of what may be foreseen.
    """
    view, gangs, expected = look.view, look.scene.cache.foreseen, look.view.held.expected
    if as_it_is(look).stopped_by_user:
        gangs.drop(view.key)
        expected.read, expected.pods, look.pods = None, (), []
        return NOTHING_DONE
    read_templates(look)
    before, expected.pods = expected.pods, view.held.expected_pods(look.source, look.now)
    look.pods = list(expected.pods)
    if expected.pods is not before or view.key not in gangs:
        look.scene.cache.foresee(view.key, look.pods)
    return NOTHING_DONE


def read_templates(look: Look) -> None:
    """Work out the pods of the source as it is, unless that was done."""
    expected, source, scene = look.view.held.expected, as_it_is(look), look.scene
    rules, classes = scene.cache.admission, scene.cache.priority_classes
    known = expected.read
    stale = known is None or known[0] is not source or known[1] != rules.edition
    if stale or expected.foresight.put_off:
        outlook = scene.foresee(source, rules.admission(look.view.key.namespace, classes))
        expected.foresight, expected.read = _foresight(look, outlook), (source, rules.edition)


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

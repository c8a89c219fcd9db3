"""Claims of ResourceQuotas what pods of held gangs will take, until the quotas count these pods."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain

from coordinator.gang.held_start.foresight import quota_refusal
from coordinator.gang.held_start.phases import Resumed
from coordinator.gang.view import GangView
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from coordinator.reconcile.together.members import held_with
from kube.devices.claim_quota import charges_of_claim
from kube.foreseen.claim_quota import with_claims
from kube.foreseen.gang import Foreseen
from kube.foreseen.namespace_quota import Charges, charges_of, counted, shown
from kube.gang.source import Stage


def short_of_quota(look: Look) -> str:
    """Say which quota does not suffice beside what others claim; of what suffices claim it.

    Gangs that were placed in one cycle come here in that order.
    """
    view, gangs = look.view, look.scene.cache.foreseen
    quotas = look.scene.cache.admission.quotas(view.key.namespace)
    mine = view.held.expected.foresight.found
    if mine is None or not quotas:
        return ""
    together = held_with(look)
    if not together:
        return ""
    mates = [each for each in together if each is not view]
    others, claimed = gangs.claimed_beside(view.key, *(each.key for each in mates))
    found = _charged(look, _with_mates(mine, mates))
    short = quota_refusal(found, others, claimed, quotas) or _kept_for_others(look, found, claimed)
    if not short and view.reservation.placement is not None:
        gangs.claim(view.key, charges_of(_charged(look, mine)))
    return short


def _charged(look: Look, found: Foreseen) -> Foreseen:
    return with_claims(found, look.view.key.namespace, look.scene.cache.devices.index)


def _with_mates(mine: Foreseen, mates: Iterable[GangView]) -> Foreseen:
    """Return the pods of a gang with those of gangs that start with it, and are not made either."""
    found = [mine]
    found += [e.held.expected.foresight.found for e in mates if e.held.expected.foresight.found]
    if len(found) == 1:
        return mine
    pod_sets = tuple(chain.from_iterable(each.pod_sets for each in found))
    objects = tuple(chain.from_iterable(each.objects for each in found))
    return replace(mine, pod_sets=pod_sets, objects=objects)


def _kept_for_others(look: Look, found: Foreseen, claimed: Charges) -> str:
    """Say that what is left is for gangs that come before this one; empty where enough is."""
    key, turns = look.view.key, look.scene.turns
    before = turns.before(key)
    if not before or look.view.reservation.placement is not None:
        return ""
    quotas = look.scene.cache.admission.quotas(key.namespace)
    mine, others = counted(charges_of(found), quotas), counted(claimed, quotas)
    for bound, of in sorted(turns.bounds(key.namespace).items()):
        left, first = of.hard - of.used - others[bound], before.get(bound, 0)
        if mine[bound] > left - first:
            quota, resource = bound
            needs, free, kept = (shown(resource, n) for n in (mine[bound], left, first))
            return (
                f"ResourceQuota {quota}: the gang needs {needs} of {resource}; {free} are left, "
                f"and gangs that come before it need {kept}"
            )
    return ""


def claim_what_is_to_come(look: Look) -> StepResult:
    """Claim for a gang that was resumed what those of its pods will take that do not exist yet."""
    view, gangs, resumed = look.view, look.scene.cache.foreseen, look.view.held.state
    if not (view.expects_pods or view.key in gangs):
        return NOTHING_DONE
    if isinstance(resumed, Resumed):
        view.held.state = resumed.with_pods(len(look.pods), look.now)
    left = _charges_to_come(look)
    if left:
        gangs.claim(view.key, left)
    elif not view.expects_pods:
        gangs.drop(view.key)
    return NOTHING_DONE


def ends_at(look: Look) -> float | None:
    """Return when nothing is kept any more for pods that do not come (monotonic seconds)."""
    resumed = look.view.held.state
    if not isinstance(resumed, Resumed) or look.view.key not in look.scene.cache.foreseen:
        return None
    return resumed.came_at + look.create_seconds


def _charges_to_come(look: Look) -> Charges:
    """Return what is still to be charged; of pods beyond the minimum only for a time."""
    view, end = look.view, ends_at(look)
    is_late = end is not None and look.now >= end and not view.expects_pods
    if not isinstance(view.held.state, Resumed) or view.reservation.placement is None or is_late:
        return {}
    found, unmade = view.held.expected.foresight.found, _unmade_claims(look)
    to_come = charges_of(_charged(look, _to_come(found, look))) if found is not None else {}
    return {**to_come, None: Counter(to_come.get(None, {})) + unmade} if unmade else to_come


def _unmade_claims(look: Look) -> Counter[str]:
    """Return what quotas will count of claims that are not made yet for pods that exist."""
    index, charges = look.scene.cache.devices.index, Counter[str]()
    for pod in look.pods:
        for each in pod.claims if pod.alive else ():
            template = index.templates.get((pod.namespace, each.template))
            if template is not None and each.meant and not each.claim:
                charges += charges_of_claim(template.spec, index.classes)
    return charges


def _to_come(found: Foreseen, look: Look) -> Foreseen:
    """Leave out what exists: pods one by one, other objects once all are created."""
    there = Counter(pod.member.pod_set for pod in look.pods if pod.member is not None)
    left = ((each, each.count - there[each.name]) for each in found.pod_sets)
    pod_sets = tuple(replace(each, count=n) for each, n in left if n > 0)
    objects = found.objects if look.source.stage is Stage.CREATING else ()
    return replace(found, pod_sets=pod_sets, objects=objects)

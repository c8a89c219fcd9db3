"""Counts what a gang uses and needs of its ResourceQuotas, and has it yield to another gang."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.phases import NotHeld, Phase, Sign, Waiting
from coordinator.gang.held_start.quota_order import Stake, Tier
from coordinator.gang.held_start.quota_stakes import Templates
from coordinator.reconcile.demand import pause_of
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult
from coordinator.reconcile.pod_writes.fences import gated, withdraw
from coordinator.reconcile.together.members import held_with
from kube.codec.observed_pod import ObservedPod
from kube.foreseen.claim_quota import with_claims
from kube.foreseen.gang import Foreseen
from kube.foreseen.namespace_quota import EXCEEDED, Amounts, Charges, charges_of, counted, exceeded
from kube.objects import names
from kube.ray.held_start import never_suspended
from scheduling.model.verdict import Reason

Pods = Mapping[str, int]
"""Numbers of pods by pod set."""


def note_stake(look: Look) -> StepResult:
    """Have the gang take part in the order of its namespace, where a quota counts it."""
    view, turns = look.view, look.scene.turns
    turns.note(view.key, _stake(look))
    view.quota_stake.text = turns.answer(view.key).holders
    return NOTHING_DONE


def make_way(look: Look) -> StepResult:
    """Have a gang suspended of which nothing started, for one that comes before it."""
    view, due = look.view, look.scene.turns.due_at(look.view.key)
    wanted_by = look.scene.turns.answer(view.key).makes_way_for
    if due is None or wanted_by is None or look.now < due or not look.scene.sighted:
        return NOTHING_DONE
    if is_started(look) or not withdraw(look, gated(look.pods)):
        return NOTHING_DONE
    why = f"it made way for {wanted_by.name}, which comes before it in a ResourceQuota"
    if wanted_by == view.key:
        why = "it was suspended: a ResourceQuota never holds all of it"
    view.held.enter(Sign.MAKES_WAY, look.source.metadata.generation)
    view.held.tries.make_way(why, look.now)
    return SURVEY_AGAIN


def is_started(look: Look) -> bool:
    """Say whether the gang has its placement, or pods that are no longer gated."""
    view = look.view
    if view.reservation.placement is not None or view.released_any or view.survey.ran:
        return True
    return any(pod.alive and not pod.gated for pod in _members(look))


def _stake(look: Look) -> Stake | None:
    if look.source.dispatched is not None:
        return None  # no ResourceQuota here counts its pods
    if not look.scene.cache.admission.quotas(look.view.key.namespace):
        return None
    units = _units(look)
    if not units:
        return _unforeseen_stake(look)
    if not any(units.values()):
        return None
    pods, view = _members(look), look.view
    tier, there = _tier(look, units), _by_set(pod for pod in pods if not pod.terminal)
    leaves = there if view.held.holds else _by_set(each for each in pods if each.terminating)
    promised = _promised(look)
    wanted = promised or _of_group(look, _total(units, _wanted(look, units)))
    if tier is Tier.WAITS and not _is_bounded(look, wanted):
        tier = Tier.NEVER_FITS  # with those that start with it
    return Stake(
        key=view.key,
        tier=tier,
        priority=_priority(look),
        arrived=look.scene.cache.owners.arrived_at(look.source),
        uses=_total(units, there),
        needs=wanted if tier is not Tier.NEVER_FITS else {},
        leaves=_total(units, leaves),
        may_make_way=tier > Tier.STAYS and not (view.held.holds or _stays(look)),
        is_promised=bool(promised),
        is_held=isinstance(view.held.state, Waiting) and not promised,
    )


def _of_group(look: Look, mine: Amounts) -> Amounts:
    """Return what a gang wants with those that start with it: the first of them wants all."""
    views = held_with(look)
    if len(views) < 2 or not mine:
        return mine if look.view in views else {}
    if views[0] is not look.view:
        return {}
    total = Counter(mine)
    for each in views[1:]:
        charges = each.quota_stake.templates.charges
        units = {name: _counted(look, of_one) for name, of_one in charges.items()}
        total.update(_total(units, {e.terms.name: e.terms.count for e in each.survey.standing}))
    return total


def _is_bounded(look: Look, wanted: Amounts) -> bool:
    """Say whether the limits would hold so much, if that were all."""
    bounds = look.scene.turns.bounds(look.view.key.namespace)
    return all(n <= bounds[bound].hard for bound, n in wanted.items() if bound in bounds)


def _promised(look: Look) -> Amounts:
    """Return what is claimed for pods of the gang that do not exist yet."""
    claim = look.scene.cache.foreseen.claimed_by(look.view.key)
    return {each: n for each, n in _counted(look, claim).items() if n}


def _counted(look: Look, charges: Charges) -> Amounts:
    return counted(charges, look.scene.cache.admission.quotas(look.view.key.namespace))


def _unforeseen_stake(look: Look) -> Stake | None:
    """Have a gang whose pods are known only once they exist want the one that was refused."""
    bounds = look.scene.turns.bounds(look.view.key.namespace)
    refused = exceeded(look.source.refused_pods)
    needs = {bound: amount for bound, amount in refused.items() if bound in bounds}
    if not needs or look.view.held.holds:
        return None
    tier = Tier.STARTED if is_started(look) else Tier.STAYS
    arrived = look.scene.cache.owners.arrived_at(look.source)
    return Stake(look.view.key, tier, look.view.understood.priority, arrived, needs=needs)


def _tier(look: Look, units: Mapping[str, Amounts]) -> Tier:
    if is_started(look):
        return Tier.STARTED
    whole, minimum = _counts(look), _minimums(look)
    if not _is_within(look, units, whole if look.view.held.holds else minimum):
        return Tier.NEVER_FITS
    # What is suspended is resumed only whole.
    stays = _stays(look) or not _is_within(look, units, whole)
    return Tier.STAYS if stays else Tier.WAITS


def _priority(look: Look) -> int:
    """Return the priority of the gang, also of one that has no pods yet that would tell it."""
    view, terms = look.view, look.view.understood.terms
    is_known = look.pods or (terms is not None and terms.priority_class)
    return view.understood.priority if is_known else view.quota_stake.templates.priority


def _stays(look: Look) -> bool:
    """Say whether the source cannot be suspended, or not for long."""
    state, cluster = look.view.held.state, look.source.resumable
    if look.view.held.holds:
        return False
    if cluster is None or "held" in look.view.record.drops or never_suspended(cluster):
        return True
    always = cluster.metadata.annotations.get(names.CREATE_PODS) == names.CREATE_ALWAYS
    return always or (isinstance(state, NotHeld) and state.by_others)


def _wanted(look: Look, units: Mapping[str, Amounts]) -> Pods:
    """Return the pods for which the gang waits for quota."""
    view, state, standing = look.view, look.view.held.state, look.view.survey.standing
    if isinstance(state, Waiting):
        return _counts(look) if _asks_for_quota(look, state) else {}
    if view.held.phase is not Phase.NONE or EXCEEDED not in look.source.refused_pods:
        return {}
    exist = {each.terms.name: each.exist for each in standing}
    if is_started(look):
        target = _counts(look) if _is_within(look, units, _counts(look)) else _minimums(look)
    else:
        asked = view.queueing.asked
        is_short = isinstance(asked, NotReady) and asked.reason is Reason.PODS_REFUSED
        target = _minimums(look) if is_short else {}
    return {name: count - exist.get(name, 0) for name, count in target.items()}


def _asks_for_quota(look: Look, waiting: Waiting) -> bool:
    """Say whether nothing but quota keeps a gang without pods from asking for room."""
    view = look.view
    if view.reservation.placement is not None or view.held.tries.paused_at(look.now):
        return False
    if view.is_finished or view.understood.problem or pause_of(look) is not None:
        return False
    if waiting.problem is not None:
        return waiting.is_short
    return not isinstance(view.queueing.asked, NotReady)


# --- amounts --------------------------------------------------------------------------------------


def _units(look: Look) -> Mapping[str, Amounts]:
    """Return what quotas count of one pod of each pod set."""
    return {name: _counted(look, charges) for name, charges in _charges(look).items()}


def _charges(look: Look) -> Mapping[str, Charges]:
    """Return what one pod of each pod set is charged with, worked out anew for each edit."""
    source, cache, share = (
        look.scene.cache.sources[look.view.key],
        look.scene.cache,
        look.view.quota_stake,
    )
    index, claims = cache.devices.index, look.view.key in cache.foreseen.claiming
    templates = index.template_edition if claims else 0
    read = source.metadata.generation, cache.admission.edition, templates
    if share.templates.read != read:
        rules = cache.admission.admission(source.metadata.namespace, cache.priority_classes)
        found = look.scene.foresee(source, rules)
        share.templates = share.templates._replace(read=read)
        # A source whose objects exist may have no templates any more.
        if isinstance(found, Foreseen):
            lowest = min((e.pod.spec.priority or 0 for e in found.pod_sets), default=0)
            share.templates = Templates(_each(look, found), lowest, read)
    return share.templates.charges


def _each(look: Look, found: Foreseen) -> dict[str, Charges]:
    ones = [replace(each, count=1) for each in found.pod_sets]
    sets = (replace(found, pod_sets=(each,), objects=()) for each in ones)
    index, namespace = look.scene.cache.devices.index, look.view.key.namespace
    return {e.pod_sets[0].name: charges_of(with_claims(e, namespace, index)) for e in sets}


def _total(units: Mapping[str, Amounts], pods: Pods) -> Amounts:
    total: Counter[tuple[str, str]] = Counter()
    for name, count in pods.items():
        if count > 0:
            total.update({each: n * count for each, n in units.get(name, {}).items()})
    return total


def _is_within(look: Look, units: Mapping[str, Amounts], pods: Pods) -> bool:
    """Say whether the limits would hold so many pods, if these were all."""
    bounds = look.scene.turns.bounds(look.view.key.namespace)
    return all(n <= bounds[b].hard for b, n in _total(units, pods).items() if b in bounds)


def _counts(look: Look) -> Pods:
    return {each.terms.name: each.terms.count for each in look.view.survey.standing}


def _minimums(look: Look) -> Pods:
    return {each.terms.name: each.terms.minimum for each in look.view.survey.standing}


def _by_set(pods: Iterable[ObservedPod]) -> Counter[str]:
    return Counter(pod.member.pod_set for pod in pods if pod.member is not None)


def _members(look: Look) -> list[ObservedPod]:
    return look.scene.cache.members(look.view.key, look.view.cluster_uid)

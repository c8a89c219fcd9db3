"""Works out what a gang asks of the next cycle, or why it cannot ask yet."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.claims.class_quota import charges_coming
from coordinator.gang.claims.of_pods import Claimed, Surroundings, claimed
from coordinator.gang.demand import (
    Demand,
    NotReady,
    Settled,
    as_far_as_made,
    demand,
    is_gathered,
    topology_of,
    unmade,
)
from coordinator.gang.owner_deadlines import end_in_words
from coordinator.gang.pods import adoption
from coordinator.gang.pods.growth import in_one_piece
from coordinator.gang.pods.kept_slots import Kept
from coordinator.gang.pods.pod_sets import Standing
from coordinator.gang.setbacks.below_minimum import breaks_at
from coordinator.gang.source import is_taken_over, offer_of
from coordinator.gang.view import GangView
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from coordinator.reconcile.setbacks import late_starts
from coordinator.reconcile.status.message import HEAD_NOT_REMADE
from coordinator.reconcile.submitter import with_its_submitter
from kube.gang.source import Stage
from kube.objects.ray import RayJob
from kube.ray.gang_terms import HEAD, GangTerms
from scheduling.model.gang import LAST, GangKey, PendingGang, Topology
from scheduling.model.verdict import Reason
from scheduling.queueing.queue_nodes import on_nodes_of_queue

GOES_BACK = "it goes back to the cluster that sent it"

LACKS_PODS = (Reason.GANG_INCOMPLETE, Reason.PODS_REFUSED, Reason.FOREIGN_GATES)


def ask(look: Look) -> StepResult:
    """Bring what the gang asks for up to date, with what KubeRay and kube-scheduler say."""
    view, refused = look.view, look.source.refused_pods
    queueing, standing = view.queueing, view.survey.standing
    queueing.unclaimed = False
    queueing.asked = _ended(look) or _demand(look, refused)
    if isinstance(queueing.asked, Settled):
        queueing.refusal = queueing.left_out = None
    if not view.asks_for_minimum:
        queueing.planned = None
    queueing.unmade = unmade(standing, refused)
    view.repairs.bind_refusal = look.scene.refusals.said_of(view.key)
    return NOTHING_DONE


def ask_for_nothing(look: Look) -> StepResult:
    """Drop all that the gang waits for, and what was said about it."""
    view, queueing = look.view, look.view.queueing
    queueing.refusal = queueing.left_out = queueing.unmade = queueing.planned = None
    queueing.position, queueing.unclaimed = 0, False
    view.repairs.kept = Kept()
    return NOTHING_DONE


def _demand(look: Look, refused: str) -> Demand:
    view, terms = look.view, look.view.understood.terms
    if view.understood.problem and view.reservation.placement is None:
        return NotReady(Reason.MISCONFIGURED, view.understood.problem)
    if terms is None:
        return Settled()
    if not any(each.terms.count for each in view.survey.standing):
        return NotReady(*look.source.no_pods)
    paused = pause_of(look) or unaccepted(look)
    if paused is not None:
        return paused
    found = _demand_by(look, terms, refused)
    if isinstance(found, NotReady) and found.reason is Reason.GANG_INCOMPLETE:
        waits = adoption.hindrance(view.survey.standing)
        return NotReady(Reason.NOT_RELEASED_BY_MUSTER, waits) if waits else found
    return _in_queue(look, terms, found) if isinstance(found, PendingGang) else found


def unaccepted(look: Look) -> NotReady | None:
    """Start nothing that was created for an offer which is not, or no longer, Started."""
    made_for, offered = look.source.takes_over, look.source.offered
    if offered is not None and offered.is_started and look.view.reservation.placement is None:
        return NotReady(Reason.HELD, f"{offered.kind} {offered.name} was started, and asks itself")
    if made_for is None or look.view.reservation.placement is not None or look.view.released_any:
        return None
    offer = offer_of(look.source, look.scene.cache)
    if offer is not None and is_taken_over(offer, look.scene.cache):
        stopped = look.view.eviction.last is not None
        return NotReady(Reason.HELD, GOES_BACK) if stopped else None
    said = f"GangOffer {made_for.name}, which it was created for, is not Started"
    return NotReady(Reason.HELD, f"{said} for an object of this name, or made by this one")


def pause_of(look: Look) -> NotReady | None:
    """Say that the gang may not be placed now, whatever room there is."""
    if look.view.understood.head_lost:
        return NotReady(Reason.HEAD_LOST, HEAD_NOT_REMADE)
    return late_starts.pause(look)


def _ended(look: Look) -> NotReady | None:
    """Start no gang for what is over; one that has room keeps it, as KubeRay has it."""
    settled = any(pod.alive and pod.settled_on for pod in look.pods)
    if settled or look.view.reservation.placement is not None:
        return None
    if look.source.stage is Stage.OVER:
        return NotReady(*look.source.no_pods)
    owner = look.scene.cache.owners.maker_of(look.source)
    said = end_in_words(owner) if isinstance(owner, RayJob) else ""
    return NotReady(Reason.JOB_ENDED, said) if said else None


def _in_queue(look: Look, terms: GangTerms, asked: PendingGang) -> Demand:
    """Let the gang wait in its queue, if that works."""
    queues = look.scene.queues
    if terms.queue in queues.faults:
        fault = queues.faults[terms.queue]
        return NotReady(Reason.QUEUE_INACTIVE, f"GangQueue {terms.queue} is not active: {fault}")
    asked, stopped = _as_repair(look, terms, asked), queues.stops.get(terms.queue)
    if stopped is not None and not asked.is_repair:
        return NotReady(Reason.QUEUE_STOPPED, stopped.in_words(terms.queue))
    needs_nodes = look.source.dispatched is None
    rules = queues.node_rules.get(terms.queue) if needs_nodes else None
    offered = look.source.offered
    comes_last = offered is not None and not offered.may_stop_gangs(look.scene.moment.wall)
    mine = replace(
        on_nodes_of_queue(asked, rules) if rules is not None else asked,
        needs_nodes=needs_nodes,
        queue=terms.queue,
        duration=terms.expected_duration or queues.queue(terms.queue).duration,
        setbacks=LAST if comes_last else _setbacks(look),
        yields=offered is not None,
    )
    return with_its_submitter(look, terms, mine)


def _as_repair(look: Look, terms: GangTerms, asked: PendingGang) -> PendingGang:
    """Mark what a gang with a placement has lost of its minimum; its surplus asks after that."""
    if not asked.minimum or look.view.reservation.placement is None:
        return asked
    parted = _goes_on(look, asked.topology) and _is_separable(terms, asked)
    return replace(asked, surplus=(), is_repair=True, is_separable=parted)


def _goes_on(look: Look, topology: Topology | None) -> bool:
    """Say whether a replica is of use to a gang without the others, and where it is to be."""
    return look.view.survey.ran and (topology is None or bool(topology.occupied))


def _is_separable(terms: GangTerms, asked: PendingGang) -> bool:
    """Say whether the head is not among what was lost, and replicas are told apart."""
    hosts = {each.name: each.hosts for each in terms.pod_sets}
    if any(each.pod_set == HEAD for each in asked.minimum):
        return False
    return all(each.replica or hosts.get(each.pod_set, 1) == 1 for each in asked.minimum)


def _setbacks(look: Look) -> int:
    """Count how often the gang gave its room back of late: it comes later, and stops none."""
    refusals, wall = look.view.refused_releases, look.scene.moment.wall
    refused = refusals.count if refusals.until > wall else 0
    broken = breaks_at(look.view.breaks, wall)
    return refused + broken + late_starts.setbacks(look) + look.view.held.tries.setbacks(wall)


def _demand_by(look: Look, terms: GangTerms, refused: str) -> Demand:
    """Ask for pods whose claims of devices are there; where that does not do, say what lacks."""
    found, cache = look.view.survey.standing, look.scene.cache
    foreseen = (pod for each in found for pod in each.waiting)
    gives = cache.devices.index.gives_any
    asks = cache.devices.asks(look.view.key) or any(gives(pod.extended) for pod in foreseen)
    ready = claimed(found, cache.devices, _surroundings(look)) if asks else Claimed(found)
    if ready.hindrance is not None and ready.hindrance.reason is not Reason.GANG_INCOMPLETE:
        return ready.hindrance
    asked = _demand_of(look, terms, ready.standing, refused)
    lacks = isinstance(asked, NotReady) and asked.reason in LACKS_PODS
    if ready.hindrance is None or not (lacks or isinstance(asked, Settled)):
        return asked
    if lacks and not is_gathered(found):
        return asked
    look.view.queueing.unclaimed = lacks
    return ready.hindrance


def _surroundings(look: Look) -> Surroundings:
    cache, namespace = look.scene.cache, look.view.key.namespace
    coming = partial(claim_charges_coming, cache, look.scene.views, namespace)
    return Surroundings(cache.columns().traits, cache.admission.quotas(namespace), coming)


def claim_charges_coming(
    cache: ClusterCache, views: Mapping[GangKey, GangView], namespace: str
) -> Counter[str]:
    """Return what quotas are still to count of claims for pods of gangs that have a node."""
    keys = {*cache.devices.gangs_by_class, *cache.foreseen.of(namespace)}
    by_class = ((key, views[key]) for key in sorted(keys, key=str) if key in views)
    return charges_coming(by_class, namespace, cache.devices.index, cache.nodes)


def _topology(look: Look, terms: GangTerms, standing: Standing) -> Topology | None:
    """Say how the workers are to be together, and whether others may have them elsewhere."""
    if terms.topology is None:
        return None
    mate = look.scene.cache.together.of(look.view.key)
    found = topology_of(terms.topology, standing, look.view.reservation.placement)
    return replace(found, is_own=True) if mate and mate.asked.parts_domains else found


def _demand_of(look: Look, terms: GangTerms, standing: Standing, refused: str) -> Demand:
    view = look.view
    topology = _topology(look, terms, standing)
    created = look.scene.cache.owners.arrived_at(look.source)
    asked = partial(demand, view.key, view.understood.priority, created)
    found = asked(standing, refused, topology)
    lacks = isinstance(found, NotReady) and found.reason in LACKS_PODS
    if lacks and _goes_on(look, topology):
        some = asked(as_far_as_made(standing), refused, topology)
        found = some if isinstance(some, PendingGang) and some.minimum else found
    if not terms.grows_whole or not isinstance(found, PendingGang):
        return found
    whole = in_one_piece(found, standing)
    return whole if whole.minimum or whole.surplus else Settled()

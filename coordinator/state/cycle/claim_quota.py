"""Postpones gangs whose claims, with those of others in the cycle, would exceed a ResourceQuota.

kube-scheduler makes claims for extended resources after the release of pods. A gang asks a cycle
only if its quota has room for its claims alone. Here the claims of all gangs that the cycle placed
are counted, each by its nodes. The next look at a postponed gang counts the others as on their way.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from coordinator.gang.claims.class_quota import charges_of_placement
from coordinator.reconcile.demand import claim_charges_coming
from coordinator.state.cycle.joining import parted_decisions
from coordinator.state.known import Known
from kube.foreseen.claim_quota import charges_over_quota
from scheduling.model.verdict import Admitted, Decision


def answers_within_quota(known: Known, decisions: Iterable[Decision]) -> Iterator[Decision]:
    """Yield the decision on each gang; leave out placements whose claims exceed a quota."""
    charged: dict[str, Counter[str]] = {}
    for each in decisions:
        parts = tuple(parted_decisions(known, (each,)))
        namespace, charges = each.key.namespace, _charges(known, parts)
        before = charged.get(namespace)
        if charges and before is None:
            before = claim_charges_coming(known.cache, known.views, namespace)
        if before is not None:
            quotas = known.cache.admission.quotas(namespace)
            if charges and charges_over_quota(charges, quotas, "", before):
                _put_off(known, parts)
                continue
            charged[namespace] = before + charges
        yield from parts


def _charges(known: Known, parts: Sequence[Decision]) -> Counter[str]:
    """Return the charges for the claims of placed gangs in namespaces with a quota."""
    found: Counter[str] = Counter()
    index, cache = known.cache.devices.index, known.cache
    if not index.classes_of_resources:
        return found
    for each in parts:
        if isinstance(each.verdict, Admitted) and cache.admission.quotas(each.key.namespace):
            standing, placement = known.views[each.key].survey.standing, each.verdict.placement
            found += charges_of_placement(standing, placement, index, cache.nodes)
    return found


def _put_off(known: Known, parts: Iterable[Decision]) -> None:
    known.agenda.dirty |= {each.key for each in parts}
    known.agenda.cycle_wanted = True

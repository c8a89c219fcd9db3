"""Admits one gang: its minimum whole or not at all, then as much surplus as fits.

A gang passes from one stage to the next, each of which holds some of its pods to domains and asks
the next of the gang so held:

1. `gang`: what cannot be judged is rejected;
2. `gang_topology`: the workers inside one domain;
3. `replica_topology`: the pods of each replica inside one domain;
4. `shared_claims`: the pods that share an unbound claim where its volume will be reached;
5. `pods`: the pods on nodes, by the search for independent or interdependent pods.
"""

from collections import Counter
from dataclasses import replace

from scheduling.admission.gang_topology import admit_in_domain, why_untried
from scheduling.admission.question import Accepted, Outcome, Question, Rejected, Untried
from scheduling.diagnosis.causes import (
    Cause,
    LimitCause,
    TooManyKinds,
    TooManyPorts,
    not_modelled,
)
from scheduling.diagnosis.refusals import MOST_CONSTRAINED_KINDS, MOST_KINDS, MOST_PORTS
from scheduling.model.gang import PendingGang
from scheduling.model.placement import NOWHERE, Assignment, Placement
from scheduling.model.pod import PodShape
from scheduling.placement.offered_by_class import as_left_by, as_offered


def admit(question: Question) -> Outcome:
    """Place the gang, if it can be judged and its minimum fits."""
    gang = question.gang
    if not gang.needs_nodes:
        return _nowhere(question)
    cause = _too_many_kinds(gang) or _too_many_ports(gang) or not_modelled(gang.groups())
    return Rejected(cause) if cause else _placed(question)


def _placed(question: Question) -> Outcome:
    """Place the gang in the room as it is offered to its pods, and take that of the room."""
    room, offered = question.room, as_offered(question.gang, question.room)
    outcome = admit_in_domain(replace(question, room=offered))
    if isinstance(outcome, Rejected):
        return outcome
    return replace(outcome, room=as_left_by(room, offered, outcome.room))


def _nowhere(question: Question) -> Accepted:
    """Accept all of a gang whose pods run elsewhere: it takes no room, and quota covers it."""
    counts: Counter[tuple[str, str, PodShape]] = Counter()
    for group in question.gang.groups():
        counts[group.pod_set, group.replica, group.shape] += group.count
    placement = Placement.of(
        Assignment(pod_set, replica, shape.key, shape.requests, ((NOWHERE, pods),))
        for (pod_set, replica, shape), pods in counts.items()
    )
    return Accepted(placement, tuple(range(len(question.gang.surplus))), question.room, 0)


def why_left_out(left_out: Cause | Untried) -> Cause:
    """Return why units of the surplus wait, worked out where it was left open."""
    return why_untried(left_out) if isinstance(left_out, Untried) else left_out


def _too_many_kinds(gang: PendingGang) -> LimitCause | None:
    """Find more kinds of pods than can be judged in a moment.

    Each kind costs a look at all nodes, and at all other kinds where they have constraints.
    """
    if 1 + len(gang.minimum) + sum(map(len, gang.surplus)) <= MOST_CONSTRAINED_KINDS:
        return None
    kinds = {(group.pod_set, group.shape) for group in gang.groups()}
    constrained = any(shape.affinity or shape.anti_affinity or shape.spread for _, shape in kinds)
    most = MOST_CONSTRAINED_KINDS if constrained else MOST_KINDS
    return TooManyKinds(len(kinds), constrained) if len(kinds) > most else None


def _too_many_ports(gang: PendingGang) -> LimitCause | None:
    """Find more host ports than can be judged in a moment."""
    ports = sum(len(shape.ports) for shape in {group.shape for group in gang.groups()})
    return TooManyPorts(ports) if ports > MOST_PORTS else None

"""Admits a gang whose workers must, or should, be inside one domain of a label.

The head is not bound: it may be inside or outside. Where pods of the gang are already there is no
choice of domains.
"""

from collections.abc import Iterator
from dataclasses import replace

from scheduling.admission.domain_search import DomainSearch
from scheduling.admission.domains import Keys
from scheduling.admission.question import Outcome, Question, Untried, places_any
from scheduling.admission.replica_topology import admit_replicas
from scheduling.diagnosis.causes import Cause
from scheduling.diagnosis.domain_refusals import WORKERS
from scheduling.model.gang import Topology


def admit_in_domain(question: Question) -> Outcome:
    """Place a gang whose workers are to be in one domain.

    What is only preferred is tried first. A surplus that finds no room there is not lost: alone, it
    is tried without.
    """
    gang = question.gang
    topology = gang.topology
    if topology is None or not any(each.pod_set in topology.pod_sets for each in gang.groups()):
        return admit_replicas(question)
    spent = 0
    for keys in _levels(topology):
        asked = question.of(gang, question.steps - spent)
        outcome = (
            _search(asked, topology, keys).run(admit_replicas) if keys else admit_replicas(asked)
        )
        spent += outcome.steps
        if places_any(outcome):
            break
    return replace(outcome, steps=spent)


def why_untried(untried: Untried) -> Cause:
    """Return why a surplus was not tried: what stops it in the domain that comes closest."""
    topology = untried.question.gang.topology
    assert topology is not None
    return _search(untried.question, topology, untried.keys).why_untried(admit_replicas)


def _levels(topology: Topology) -> Iterator[Keys]:
    """Yield the labels whose values the workers are to share, the most wanted first."""
    required = (topology.required,) if topology.required else ()
    if topology.preferred and topology.preferred != topology.required:
        yield (*required, topology.preferred)
    yield required


def _search(question: Question, topology: Topology, keys: Keys) -> DomainSearch:
    return DomainSearch(question, topology.pod_sets, keys, WORKERS, topology.occupied)

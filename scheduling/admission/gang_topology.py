"""Admits a gang whose workers must, or should, be inside one domain of a label.

The head is not bound: it may be inside or outside. Where pods of the gang are already there is no
choice of domains. Each of several joined gangs may have a domain of its own. The searches for these
domains are nested, so that every combination is tried as long as there are steps.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from scheduling.admission.domain_search import DomainSearch
from scheduling.admission.domains import Keys
from scheduling.admission.question import Outcome, Question, Untried, places_any
from scheduling.admission.replica_topology import admit_replicas
from scheduling.admission.together import owner_of
from scheduling.diagnosis.causes import Cause
from scheduling.diagnosis.domain_refusals import WORKERS
from scheduling.model.gang import Topology


def admit_in_domain(question: Question) -> Outcome:
    """Place a gang whose workers are to be in one domain.

    What is only preferred is tried first. A surplus that finds no room there is not lost: alone, it
    is tried without.
    """
    gang, topology = question.gang, question.gang.topology
    pod_sets = {each.pod_set for each in gang.groups()} if topology is not None else set()
    domains = topology.domains if topology is not None else ()
    return _in_each(question, [each for each in domains if not pod_sets.isdisjoint(each.pod_sets)])


def _in_each(question: Question, domains: Sequence[Topology]) -> Outcome:
    """Place a gang in the first of these domains, and inside of that in the others."""
    if not domains:
        return admit_replicas(question)
    topology, spent = domains[0], 0
    admit = partial(_in_each, domains=domains[1:])
    for keys in _levels(topology):
        asked = question.of(question.gang, question.steps - spent)
        outcome = _search(asked, topology, keys).run(admit) if keys else admit(asked)
        spent += outcome.steps
        if places_any(outcome):
            break
    return replace(outcome, steps=spent)


def why_untried(untried: Untried) -> Cause:
    """Return why a surplus was not tried: what stops it in the domain that comes closest."""
    asked = untried.question.gang.topology
    assert asked is not None
    topology = next(each for each in asked.domains if each.pod_sets == untried.pod_sets)
    return _search(untried.question, topology, untried.keys).why_untried(admit_replicas)


def _levels(topology: Topology) -> Iterator[Keys]:
    """Yield the labels whose values the workers are to share, the most wanted first."""
    required = (topology.required,) if topology.required else ()
    if topology.preferred and topology.preferred != topology.required:
        yield (*required, topology.preferred)
    yield required


def _search(question: Question, topology: Topology, keys: Keys) -> DomainSearch:
    pods = f"{WORKERS} of {owner_of(topology.pod_sets[0])}" if topology.is_own else WORKERS
    return DomainSearch(question, topology.pod_sets, keys, pods, topology.occupied)

"""Admits a gang whose pods share claims that are not bound yet.

The first of these pods to be bound decides where the volume is made. So they are placed where they
all reach it, and those on the first node are released alone: until they are bound kube-scheduler
refuses the others.
"""

from dataclasses import replace

from scheduling.admission.domain_search import DomainSearch
from scheduling.admission.pods import admit_pods
from scheduling.admission.question import Accepted, Outcome, Question, Rejected
from scheduling.diagnosis.causes import ReachUnknown
from scheduling.model.gang import Sharing
from scheduling.placement.release_waves import first_alone


def admit_sharers(question: Question) -> Outcome:
    """Place a gang whose pods share claims together, where the first of them leaves the volume."""
    sharing = question.gang.sharing
    if sharing is None:
        return admit_pods(question)
    outcome = _together(question, sharing) if sharing.keys else admit_pods(question)
    if isinstance(outcome, Rejected):
        return outcome
    return replace(outcome, placement=first_alone(outcome.placement, sharing.pod_sets))


def _together(question: Question, sharing: Sharing) -> Outcome:
    pods = f"the pods that share {sharing.claims}"
    outcome = DomainSearch(question, sharing.pod_sets, sharing.keys, pods).run(admit_pods)
    if isinstance(outcome, Accepted) or sharing.certain:
        return outcome
    return Rejected(ReachUnknown(pods), outcome.steps)

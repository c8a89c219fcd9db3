"""Which domains are tried for a gang, and what is said where none takes it."""

from dataclasses import replace

import pytest

from scheduling.admission.domain_search import DomainSearch
from scheduling.admission.question import Outcome, Question, Rejected
from scheduling.diagnosis.causes import AwaitsBinding, Cause, DoesNotFit, EqualPodsDiffer
from scheduling.diagnosis.domain_refusals import WORKERS
from scheduling.diagnosis.explain import explain
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import PendingGang
from scheduling.model.verdict import Reason
from tests.builders import columns, gang, group, node, shape
from tests.scheduling.admission.test_interdependent import ZONE, asking
from tests.scheduling.test_bad_input import IN_A_ZONE, WORLD, unlike

THREE_ZONES = FreeCapacity.of(columns(*(node(name, cpu=1, labels={ZONE: name}) for name in "abc")))
NO_FIT = DoesNotFit((group("w", 9, shape(cpu=1)),), THREE_ZONES)


def tries(asked: PendingGang, steps: int) -> int:
    """Return in how many domains a gang is tried that none of them takes."""
    count = 0

    def reject(question: Question) -> Outcome:
        nonlocal count
        count += 1
        return Rejected(DoesNotFit(question.gang.minimum, question.room))

    question = Question(asked, FreeCapacity.of(WORLD), steps)
    DomainSearch(question, ("w",), (ZONE,), WORKERS).run(reject)
    return count


def test_what_fits_nowhere_is_not_tried_in_every_domain() -> None:
    head = group("head", 1, shape(cpu=1, selector={ZONE: "nowhere"}))
    asked = replace(asking(head, group("w", 1, shape(cpu=1))), topology=IN_A_ZONE)
    assert tries(asked, 4_000_000) == 1
    assert tries(replace(asked, minimum=asked.minimum[1:]), 4_000_000) == 9


def test_a_try_of_many_pods_takes_more_of_the_steps() -> None:
    """Each try makes the gang anew, pod by pod."""
    asked = replace(unlike(1000, shape(cpu=1)), topology=IN_A_ZONE)
    assert tries(asked, 1_000_000) <= 4


@pytest.mark.parametrize(
    ("causes", "tried", "reason"),
    [
        ([NO_FIT, NO_FIT, NO_FIT], 3, Reason.NEVER_FITS),
        ([NO_FIT, AwaitsBinding(), NO_FIT], 3, Reason.UNDECIDED),
        ([NO_FIT, EqualPodsDiffer("w: differ"), NO_FIT], 2, Reason.UNSUPPORTED),
    ],
)
def test_one_domain_that_is_not_decided_or_judged_leaves_the_gang_so(
    causes: list[Cause], tried: int, reason: Reason
) -> None:
    """A gang that cannot be judged in one domain is not tried in the next."""
    left = list(causes)
    question = Question(gang("g", group("w", 1, shape(cpu=1))), THREE_ZONES, 4_000_000)
    outcome = DomainSearch(question, ("w",), (ZONE,), WORKERS).run(lambda _: Rejected(left.pop(0)))
    assert len(causes) - len(left) == tried
    assert isinstance(outcome, Rejected)
    assert explain(outcome.cause).reason is reason

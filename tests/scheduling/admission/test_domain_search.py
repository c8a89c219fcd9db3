"""How many domains are tried for a gang."""

from dataclasses import replace

from scheduling.admission.domain_search import DomainSearch
from scheduling.admission.question import Outcome, Question, Rejected
from scheduling.diagnosis.causes import DoesNotFit
from scheduling.diagnosis.domain_refusals import WORKERS
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import PendingGang
from tests.builders import group, shape
from tests.scheduling.admission.test_interdependent import ZONE, asking
from tests.scheduling.test_bad_input import IN_A_ZONE, WORLD, unlike


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

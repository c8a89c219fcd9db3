"""A refusal counts when its reason or its predicates are news, and not for other numbers."""

from coordinator.state.verdict_counts import VerdictCounts
from scheduling.model.verdict import PodSetRefusal, Reason, Refusal


def refusal(reason: Reason, message: str, **nodes: int) -> Refusal:
    rejected = tuple(nodes.items())
    pod_set = PodSetRefusal("w", 2, 0, (), "cpu", 1, 2, 0, 0, 0, rejections=rejected)
    return Refusal(reason, message, (pod_set,))


def test_other_numbers_are_no_other_refusal() -> None:
    counts = VerdictCounts()
    first = refusal(Reason.INSUFFICIENT_RESOURCES, "1 of 2", NodeResourcesFit=3)
    counts.refused(None, first)
    counts.refused(first, refusal(Reason.INSUFFICIENT_RESOURCES, "0 of 2", NodeResourcesFit=4))
    assert counts.refusals == {"InsufficientResources": 1}
    assert counts.predicates == {"NodeResourcesFit": 1}


def test_another_reason_or_predicate_is_news() -> None:
    counts = VerdictCounts()
    first = refusal(Reason.INSUFFICIENT_RESOURCES, "", NodeResourcesFit=3)
    second = refusal(Reason.INSUFFICIENT_RESOURCES, "", NodeResourcesFit=3, TaintToleration=1)
    third = refusal(Reason.NEVER_FITS, "", NodeResourcesFit=3, TaintToleration=1)
    counts.refused(None, first)
    counts.refused(first, second)
    counts.refused(second, third)
    assert counts.refusals == {"InsufficientResources": 2, "NeverFits": 1}
    assert counts.predicates == {"NodeResourcesFit": 3, "TaintToleration": 2}


def test_a_predicate_that_keeps_no_node_is_none() -> None:
    counts = VerdictCounts()
    counts.refused(None, refusal(Reason.UNDECIDED, "", TaintToleration=0))
    assert counts.predicates == {}

"""A prefetched answer goes to its own question, and is computed only where it is wanted."""

from __future__ import annotations

import pytest

from extender.score_prefetch import ScorePrefetch
from extender.snapshot import WatchedPod
from extender.wire.node_lists import NodeList
from tests.extender.worlds import as_watched_pod, pod

ONE, TWO = as_watched_pod(pod("one")), as_watched_pod(pod("two"))
AB, BC = NodeList(["a", "b"]), NodeList(["b", "c"])


class Scorer:
    """Answers with how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, NodeList]] = []
        self.prefetch = ScorePrefetch(self)

    def __call__(self, found: WatchedPod, nodes: NodeList) -> bytes:
        self.asked.append((found.pod.name, nodes))
        return str(len(self.asked)).encode()


@pytest.fixture
def scorer() -> Scorer:
    return Scorer()


def test_what_was_worked_out_ahead_is_the_answer(scorer: Scorer) -> None:
    scorer.prefetch.expect(ONE, AB)
    scorer.prefetch.work()
    assert scorer.prefetch.answer(ONE.pod.uid, AB) == b"1"
    assert scorer.asked == [("one", AB)]


def test_what_is_asked_for_before_it_is_worked_out_is_not_worked_out_later(scorer: Scorer) -> None:
    scorer.prefetch.expect(ONE, AB)
    assert scorer.prefetch.answer(ONE.pod.uid, AB) is None
    scorer.prefetch.work()
    assert scorer.asked == []


@pytest.mark.parametrize(("found", "nodes"), [(TWO, AB), (ONE, BC), (ONE, NodeList(["a", "b"]))])
def test_another_question_does_not_get_that_answer(
    scorer: Scorer, found: WatchedPod, nodes: NodeList
) -> None:
    scorer.prefetch.expect(ONE, AB)
    scorer.prefetch.work()
    assert scorer.prefetch.answer(found.pod.uid, nodes) is None


def test_a_later_filter_ends_what_was_worked_out(scorer: Scorer) -> None:
    scorer.prefetch.expect(ONE, AB)
    scorer.prefetch.work()
    scorer.prefetch.expect(ONE, AB)
    assert scorer.prefetch.answer(ONE.pod.uid, AB) is None


def test_nothing_more_is_computed_where_prioritize_is_not_called(scorer: Scorer) -> None:
    for _ in range(3):
        scorer.prefetch.expect(ONE, AB)
        scorer.prefetch.work()
    assert len(scorer.asked) == 1
    scorer.prefetch.answer(ONE.pod.uid, AB)
    scorer.prefetch.expect(TWO, AB)
    scorer.prefetch.work()
    assert scorer.asked[-1] == ("two", AB)


def test_one_node_needs_no_scores(scorer: Scorer) -> None:
    scorer.prefetch.expect(ONE, NodeList(["a"]))
    scorer.prefetch.work()
    assert scorer.asked == []

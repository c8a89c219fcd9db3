"""How often a gang is started again that is never ready, and after which pauses."""

import msgspec
import pytest

from coordinator.gang.setbacks.late_starts import (
    LONGEST_BACKOFF,
    Edition,
    LateStarts,
    cause_in_words,
    edition_of,
    is_given_up,
    late_starts_json,
    late_starts_recorded,
    one_more,
    pause_in_words,
)
from coordinator.gang.source import source_of
from kube.gang.source import GangSource
from kube.objects import names
from kube.objects.gang import GangLateStarts
from kube.objects.queues.queue import Timeouts
from tests.kube.ray.clusters import read_cluster

RULES = Timeouts(ready_seconds=600, retries=2, backoff_seconds=60)
NOW = 1_767_225_600.0  # 2026-01-01
OF = Edition(3)


def after(starts: int, rules: Timeouts = RULES) -> LateStarts:
    late = None
    for _ in range(starts):
        late = one_more(late, OF, rules, NOW)
    assert late is not None
    return late


def test_the_pause_doubles_up_to_an_hour() -> None:
    pauses = [after(count).not_before - NOW for count in range(1, 9)]
    assert pauses == [60, 120, 240, 480, 960, 1920, LONGEST_BACKOFF, LONGEST_BACKOFF]


def test_a_thousand_late_starts_are_counted_too() -> None:
    assert after(1000).not_before - NOW == LONGEST_BACKOFF


def test_a_gang_is_given_up_after_the_last_retry() -> None:
    assert [is_given_up(after(count), RULES) for count in (1, 2, 3)] == [False, False, True]
    assert is_given_up(after(1), msgspec.structs.replace(RULES, retries=0))
    assert not is_given_up(None, RULES)


def test_more_retries_than_before_take_a_gang_up_again() -> None:
    assert not is_given_up(after(3), msgspec.structs.replace(RULES, retries=3))


@pytest.mark.parametrize("late", [after(1), LateStarts(2, NOW + 60, Edition(0, "again"))])
def test_what_is_written_down_reads_back_the_same(late: LateStarts) -> None:
    assert (
        late_starts_recorded(msgspec.convert(late_starts_json(late), GangLateStarts), None) == late
    )


def test_nothing_is_written_of_a_gang_that_was_never_late() -> None:
    assert late_starts_json(None) == {}
    assert late_starts_recorded(None, 1.0) is late_starts_recorded(GangLateStarts(), 1.0) is None


def test_messages_have_numbers() -> None:
    said = "the minimum was not ready within 600 s of its placement (start 2 of 3)"
    assert cause_in_words(after(2), RULES) == said
    assert pause_in_words(after(2)) == "the gang may start again from 2026-01-01T00:02:00Z on"


def cluster(generation: int, *, autoscaling: bool = False, retry: str = "") -> GangSource:
    made = {
        "metadata": {"generation": generation, "annotations": {names.RETRY: retry}},
        "spec": {"enableInTreeAutoscaling": autoscaling},
    }
    return source_of(read_cluster(made))


def test_an_edit_is_another_try_but_not_where_the_autoscaler_edits() -> None:
    assert edition_of(cluster(1)) != edition_of(cluster(2))
    assert edition_of(cluster(1, autoscaling=True)) == edition_of(cluster(2, autoscaling=True))
    assert edition_of(cluster(1)) != edition_of(cluster(1, retry="2"))

"""The phases of a held start, by the table of their transitions."""

import pytest

from coordinator.gang.held_start.phases import STATES, TRANSITIONS, Phase, Sign, entered
from coordinator.gang.held_start.start import HeldStart, held_json, held_recorded
from kube.gang.source import Stage
from kube.objects.gang import GangHeld


@pytest.mark.parametrize("phase", Phase)
def test_each_phase_has_a_state_and_an_answer_to_each_stage(phase: Phase) -> None:
    assert STATES[phase].phase is phase
    assert set(Stage) < TRANSITIONS[phase].keys()
    assert TRANSITIONS[phase][Sign.OPTED_OUT] is Phase.NONE


def test_what_is_suspended_again_waits_and_starts_anew() -> None:
    start = HeldStart()
    signs = (Sign.MAKES_WAY, Sign.SUSPENDED, Sign.RESUMED, Sign.GIVEN_BACK, Sign.SUSPENDED)
    found = []
    for generation, sign in enumerate(signs, 1):
        start.enter(sign, generation)
        found.append((start.phase, start.state.generation, start.holds))
    assert found == [
        (Phase.SUSPENDING, 1, True),
        (Phase.WAITING, 2, True),
        (Phase.RESUMED, 3, False),
        (Phase.SUSPENDING, 4, True),
        (Phase.WAITING, 5, True),
    ]


@pytest.mark.parametrize(
    ("phase", "sign"), [(Phase.NONE, Sign.SUSPENDED), (Phase.WAITING, Sign.MAKES_WAY)]
)
def test_a_sign_that_no_phase_expects_is_a_bug(phase: Phase, sign: Sign) -> None:
    with pytest.raises(KeyError):
        entered(STATES[phase](), sign, 1)


def test_what_others_resumed_is_marked_unless_it_may_have_been_us() -> None:
    marks = []
    for failures in (0, 1):
        start = held_recorded(GangHeld("Waiting", 1))
        start.write.attempts.failures = failures
        start.enter(Sign.TAKEN_OVER, 2)
        marks.append(getattr(start.state, "by_others", None))
    assert marks == [True, False]


def test_the_first_time_a_gang_makes_way_is_free_then_it_pauses_for_twice_as_long() -> None:
    tries = HeldStart().tries
    pauses = []
    for _ in range(4):
        tries.make_way("it made way", now=100.0)
        pauses.append(tries.paused.until - 100.0 if tries.paused is not None else 0.0)
    assert pauses == [0.0, 30.0, 60.0, 120.0]
    assert tries.setbacks(wall=0.0) == 0


def test_a_record_of_a_later_release_is_none_and_ours_are_read_back() -> None:
    assert held_recorded(GangHeld("Dreaming", 3)).phase is Phase.NONE
    assert held_json(held_recorded(GangHeld("Waiting", 3))) == {"phase": "Waiting", "generation": 3}

"""The same random cases each time on a real control plane; `python -m tests.oracle` runs more."""

import math
from collections import Counter
from collections.abc import Iterator

import pytest

from testbed.recipes import chosen_kubernetes
from tests.oracle.__main__ import opened, run
from tests.oracle.devices.device_trial import try_device_case
from tests.oracle.ingredients import INGREDIENTS
from tests.oracle.stage import Stage
from tests.oracle.tally import ADMITTED

CHOSEN = (292, 359, 788, 1080)
"""Among the first 120 none has a series that decides, nor a release in two waves."""


FEW_DEVICE_WORLDS = range(44, 60)
"""Of the 60 worlds of devices, all of which would take `make test` too long; some need waves."""


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """One control plane for all cases."""
    with opened(chosen_kubernetes()) as ready:
        yield ready


@pytest.mark.controlplane
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("cases", "least"),
    [
        pytest.param((*range(20), *CHOSEN), 2, id="24"),
        pytest.param((*range(120), *CHOSEN), 12, id="124", marks=pytest.mark.long),
    ],
)
def test_kube_scheduler_agrees_with_every_answer(
    stage: Stage, cases: tuple[int, ...], least: int
) -> None:
    """No yes that kube-scheduler refuses, no no where there was a way.

    Every constraint is in `least` of the cases at least.
    """
    tally = run(stage, [f"make-test/{at}" for at in cases], math.inf)
    assert tally.cases == len(cases)
    present = Counter(name for each in tally.outcomes for name in each.present)
    assert [each.name for each in INGREDIENTS if present[each.name] < least] == []
    assert any("series" in each.deciders for each in tally.outcomes)
    assert any(each.waves > 1 for each in tally.outcomes)
    assert not tally.unsound
    assert not tally.incomplete
    assert not tally.misjudged
    assert len(tally.undecided) <= max(1, tally.cases // 50)


@pytest.mark.controlplane
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "worlds",
    [
        pytest.param(FEW_DEVICE_WORLDS, id="16"),
        pytest.param(range(60), id="60", marks=pytest.mark.long),
    ],
)
def test_kube_scheduler_allocates_what_was_foreseen(stage: Stage, worlds: range) -> None:
    """Where Muster says yes all pods get their devices, in the waves that it says."""
    tally = run(stage, [f"devices/{at}" for at in worlds], math.inf, try_device_case)
    assert tally.cases == len(worlds)
    admitted = [each for each in tally.outcomes if each.answer == ADMITTED]
    assert len(admitted) >= len(worlds) // 5
    assert any(each.waves > 1 for each in admitted)
    assert not tally.unsound
    assert not tally.incomplete
    assert not any(each.unanswered for each in tally.outcomes)

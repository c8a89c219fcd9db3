"""The same random cases each time on a real control plane; `python -m tests.oracle` runs more."""

import math
from collections import Counter

import pytest

from testbed.recipes import chosen_kubernetes
from tests.oracle.__main__ import run
from tests.oracle.ingredients import INGREDIENTS

CHOSEN = (292, 359, 788, 1080)
"""Among the first 120 none has a series that decides, nor a release in two waves."""


@pytest.mark.controlplane
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("cases", "least"),
    [
        pytest.param((*range(20), *CHOSEN), 2, id="24"),
        pytest.param((*range(120), *CHOSEN), 12, id="124", marks=pytest.mark.long),
    ],
)
def test_kube_scheduler_agrees_with_every_answer(cases: tuple[int, ...], least: int) -> None:
    """No yes that kube-scheduler refuses, no no where there was a way.

    Every constraint is in `least` of the cases at least.
    """
    tally = run([f"make-test/{at}" for at in cases], math.inf, chosen_kubernetes())
    assert tally.cases == len(cases)
    present = Counter(name for each in tally.outcomes for name in each.present)
    assert [each.name for each in INGREDIENTS if present[each.name] < least] == []
    assert any("series" in each.deciders for each in tally.outcomes)
    assert any(each.waves > 1 for each in tally.outcomes)
    assert not tally.unsound
    assert not tally.incomplete
    assert not tally.misjudged
    assert len(tally.undecided) <= max(1, tally.cases // 50)

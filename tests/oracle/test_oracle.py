"""The same random cases each time on a real control plane; `python -m tests.oracle` runs more."""

import math
from collections import Counter

import pytest

from testbed.recipes import chosen_kubernetes
from tests.oracle.__main__ import run
from tests.oracle.ingredients import INGREDIENTS

CASES = (*range(120), 292, 359, 788, 1080)
"""Among the first 120 none has a series that decides, nor a release in two waves."""
LEAST = 12
"""In so many of the cases every constraint is there."""


@pytest.mark.controlplane
@pytest.mark.timeout(900)
def test_kube_scheduler_agrees_with_every_answer() -> None:
    """No yes that kube-scheduler refuses, no no where there was a way."""
    tally = run([f"make-test/{at}" for at in CASES], math.inf, chosen_kubernetes())
    assert tally.cases == len(CASES)
    present = Counter(name for each in tally.outcomes for name in each.present)
    assert [each.name for each in INGREDIENTS if present[each.name] < LEAST] == []
    assert any("series" in each.deciders for each in tally.outcomes)
    assert any(each.waves > 1 for each in tally.outcomes)
    assert not tally.unsound
    assert not tally.incomplete
    assert not tally.misjudged
    assert len(tally.undecided) <= tally.cases // 50

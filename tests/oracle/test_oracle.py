"""The same random cases each time on a real control plane; `python -m tests.oracle` runs more."""

import math
from collections import Counter

import pytest

from testbed.recipes import DEFAULT_KUBERNETES
from tests.oracle.__main__ import run
from tests.oracle.ingredients import INGREDIENTS

CASES = 120
LEAST = CASES // 10
"""In so many of the cases every constraint is there; which are tried is fixed, and so is this."""


@pytest.mark.controlplane
@pytest.mark.timeout(900)
def test_kube_scheduler_agrees_with_every_answer() -> None:
    """No yes that kube-scheduler refuses, no no where there was a way."""
    tally = run([f"make-test/{at}" for at in range(CASES)], math.inf, DEFAULT_KUBERNETES)
    assert tally.cases == CASES
    present = Counter(name for each in tally.outcomes for name in each.present)
    assert [each.name for each in INGREDIENTS if present[each.name] < LEAST] == []
    assert not tally.unsound
    assert not tally.incomplete
    assert not tally.misjudged
    assert len(tally.undecided) <= tally.cases // 50

"""The same random cases each time on a real control plane; `python -m tests.oracle` runs more."""

import math

import pytest

from testbed.recipes import DEFAULT_KUBERNETES
from tests.oracle.__main__ import run

CASES = 200


@pytest.mark.controlplane
@pytest.mark.timeout(900)
def test_kube_scheduler_agrees_with_every_answer() -> None:
    """No yes that kube-scheduler refuses, no no where there was a way."""
    tally = run([f"make-test/{at}" for at in range(CASES)], math.inf, DEFAULT_KUBERNETES)
    assert tally.cases == CASES
    assert not tally.unsound
    assert not tally.incomplete
    assert not tally.misjudged
    assert len(tally.undecided) <= tally.cases // 50

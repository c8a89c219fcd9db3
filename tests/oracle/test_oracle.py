"""Sixty seconds of random cases on a real control plane; `python -m tests.oracle` runs more."""

import pytest

from testbed.recipes import DEFAULT_KUBERNETES
from tests.oracle.__main__ import run

SECONDS = 60.0


@pytest.mark.controlplane
@pytest.mark.timeout(240)
def test_kube_scheduler_agrees_with_every_answer() -> None:
    """No yes that kube-scheduler refuses, no no where there was a way."""
    tally = run([f"make-test/{at}" for at in range(2000)], SECONDS, DEFAULT_KUBERNETES)
    assert tally.cases >= 30
    assert not tally.unsound
    assert not tally.incomplete
    assert not tally.misjudged
    assert len(tally.undecided) <= tally.cases // 50

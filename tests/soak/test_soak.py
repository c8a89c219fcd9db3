"""Minutes of every fault on a control plane; `make soak` takes longer, and more nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.campaign import soak
from tests.soak.plan import EVERYTHING, RAY_ALONE, Mix

NODES = 40


@pytest.mark.controlplane
@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("mix", "minutes"),
    [
        pytest.param(RAY_ALONE, 1.0, id="ray"),
        pytest.param(EVERYTHING, 3.0, id="everything"),
    ],
)
def test_every_invariant_holds_for_minutes(tmp_path: Path, mix: Mix, minutes: float) -> None:
    """The same plan each time, so that a change is not refused for the fault of another one.

    AppWrappers start once their rules are 30 s old.
    """
    said: list[str] = []
    soak(1, minutes, NODES, tmp_path / "soak", said.append, quiet=10.0, mix=mix)
    assert said[-1].startswith("seed 1: every invariant held")

"""A minute of every fault on a control plane; `make soak` takes longer, and more nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.campaign import soak

NODES = 40


@pytest.mark.controlplane
@pytest.mark.timeout(1200)
def test_every_invariant_holds_for_a_minute(tmp_path: Path) -> None:
    """The same plan each time, so that a change is not refused for the fault of another one."""
    said: list[str] = []
    soak(1, 1.0, NODES, tmp_path / "soak", said.append, quiet=10.0)
    assert said[-1].startswith("seed 1: every invariant held")

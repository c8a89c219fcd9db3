"""Servers and a cluster whose heads keep their state, for the tests beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.headstate.kept import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)

"""The demo of several clusters shows what it claims."""

from pathlib import Path

import pytest

from demo.clusters import standing

pytestmark = [pytest.mark.controlplane, pytest.mark.long, pytest.mark.timeout(900)]


def test_each_member_runs_one_gang_and_the_third_follows(tmp_path: Path) -> None:
    with standing(tmp_path) as demo:
        demo.play()
    assert not [each.text for each in demo.claims if not each.holds]

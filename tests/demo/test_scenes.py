"""The scenes show what the demo claims, and fail when it does not hold.

`make demo` plays them all, so `make test` leaves them out.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from demo import cli
from demo.app_wrapper import wrapped_pair
from demo.claims import Claim
from demo.devices import claimed_devices
from demo.display import Lines
from demo.foretold import told_when_they_start
from demo.giving_way import gives_way
from demo.held_start import waits_without_pods
from demo.managing import managed_by_commands
from demo.scenes import SCENES, Scene, many_in_turn, scattered_gpus, stock_pair, two_clusters
from demo.stage import Stage
from testbed.errors import TestbedError

pytestmark = [pytest.mark.controlplane, pytest.mark.variant]


def failed(stage: Stage, claims: list[Claim]) -> list[str]:
    texts = [claim.text for claim in claims if not claim.holds]
    return [*texts, f"logs: {stage.cluster.logs}"] if texts else []


def test_of_two_clusters_one_runs_and_the_other_waits_whole(stage: Stage) -> None:
    assert not failed(stage, two_clusters(stage))


def test_scattered_gpus_are_not_taken(stage: Stage) -> None:
    assert not failed(stage, scattered_gpus(stage))


def test_gangs_run_one_after_another(stage: Stage) -> None:
    assert not failed(stage, many_in_turn(stage, count=8))


def test_a_gang_of_low_priority_gives_way_and_comes_back(stage: Stage) -> None:
    assert not failed(stage, gives_way(stage))


def test_a_held_gang_waits_without_a_pod(stage: Stage) -> None:
    assert not failed(stage, waits_without_pods(stage))


def test_of_two_app_wrappers_the_second_is_created_when_the_first_is_deleted(stage: Stage) -> None:
    assert not failed(stage, wrapped_pair(stage))


def test_an_owner_manages_by_commands(stage: Stage) -> None:
    assert not failed(stage, managed_by_commands(stage))


def test_gangs_are_told_when_they_will_start(stage: Stage) -> None:
    assert not failed(stage, told_when_they_start(stage))


def test_of_two_gangs_that_claim_devices_the_second_waits_for_them(stage: Stage) -> None:
    assert not failed(stage, claimed_devices(stage))


def test_without_the_label_the_check_finds_the_partial_gang(stage: Stage) -> None:
    assert not failed(stage, stock_pair(stage))
    pair = {("stock", name): 5 for name in ("alpha", "beta")}
    findings = stage.world.recorder.partial_gangs(pair)
    assert findings
    assert all("was unschedulable" in str(finding) for finding in findings)
    assert stage.never_partial(pair).holds is False
    assert stage.never_together(pair).holds is False


def test_a_scene_leaves_nothing_for_the_next(stage: Stage) -> None:
    stage.clear()
    assert not stage.world.rows()
    assert not stage.cluster.api.get("/api/v1/nodes")["items"]


def a_claim_that_does_not_hold(_stage: Stage) -> list[Claim]:
    return [Claim("pigs fly", holds=False)]


def a_wait_in_vain(_stage: Stage) -> list[Claim]:
    raise TestbedError("waited 30 s in vain for pigs to fly")


@pytest.mark.parametrize("play", [a_claim_that_does_not_hold, a_wait_in_vain])
def test_a_deviation_is_told_with_the_logs(
    stage: Stage, play: Callable[[Stage], list[Claim]], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = io.StringIO()
    scenes = [Scene(1, "Pigs", "Look up.", play), SCENES[0]]
    assert not cli.show(stage.cluster, scenes, Lines(shown))
    assert "✗" in shown.getvalue()
    assert "fly" in shown.getvalue()
    assert "stock" not in shown.getvalue(), "nothing is played after a deviation"
    assert str(stage.cluster.logs) in capsys.readouterr().err

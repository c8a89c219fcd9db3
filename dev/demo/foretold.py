"""The scene of gangs that are told when they will start."""

from __future__ import annotations

from datetime import datetime

from demo.claims import Claim
from demo.manifests import as_gang, lasting, ray_cluster
from demo.stage import Stage
from testbed.history import Gang
from testbed.muster import start_forecaster
from testbed.nodes import NodeSpec

_SIZE = 5
_HOUR = 3600.0
_HURRIED = {"REST_SECONDS": "0.3", "CPU_SHARE": "1"}
"""A cluster of the demo is small: its forecaster need not rest for half a minute."""


def told_when_they_start(stage: Stage) -> list[Claim]:
    """Play one gang that runs for two hours, and two that wait for it and for one another."""
    stage.set_up("scene-8", [NodeSpec("eight-cpus-8", cpus=8)])
    first = _create(stage, "first", "2h")
    stage.wait_whole(first, _SIZE)
    second, third = _create(stage, "second", "1h"), _create(stage, "third", "1h")
    stage.wait_refused(second)
    program, _ = start_forecaster(stage.cluster, _HURRIED)
    try:
        return [*_told(stage, second, third), *_moves(stage, first, second, third)]
    finally:
        program.stop()


def _create(stage: Stage, name: str, duration: str) -> Gang:
    cluster = as_gang(ray_cluster(stage.cluster.samples, name, workers=_SIZE - 1))
    return stage.create_ray_cluster(lasting(cluster, duration))


def _told(stage: Stage, second: Gang, third: Gang) -> list[Claim]:
    """See what two gangs that wait are told, an hour apart."""
    one, other = (_expected(stage, each) for each in (second, third))
    shown = stage.muster("why", third[1])
    line = next((each for each in shown.splitlines() if "expected start" in each), "")
    stage.display.say(line)
    stage.display.pause()
    apart = other - one
    return [
        Claim(f"third says when and why: {line}", holds="second ends (waits too" in line),
        Claim(
            f"it is told {apart / 60:.0f} minutes after second, which runs for 60",
            holds=abs(apart - _HOUR) < 60,
        ),
    ]


def _moves(stage: Stage, first: Gang, second: Gang, third: Gang) -> list[Claim]:
    """End the first gang early, and see the estimate of the third follow."""
    before = _expected(stage, third)
    stage.delete_ray_cluster(first)
    stage.wait_whole(second, _SIZE)

    def follows() -> float | None:
        sooner = before - _expected(stage, third)
        return sooner if sooner > _HOUR else None

    sooner = stage.world.wait_until(follows, "the estimate of third to follow")
    return [
        Claim(f"first ended early, and third is expected {sooner / 60:.0f} minutes sooner"),
        stage.never_partial({first: _SIZE, second: _SIZE, third: _SIZE}),
    ]


def _expected(stage: Stage, gang: Gang) -> float:
    """Return when a gang is expected to start, once it is told."""
    said = stage.world.wait_until(
        lambda: stage.world.state(gang).expected, f"{gang[1]} to be told when it starts"
    )
    return datetime.fromisoformat(said).timestamp()

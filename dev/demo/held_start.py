"""The scene of a gang of which nothing exists while it waits."""

from __future__ import annotations

from demo.claims import Claim
from demo.manifests import as_gang, held, ray_cluster
from demo.stage import Stage
from testbed.api import Json
from testbed.nodes import NodeSpec

_SIZE = 5


def waits_without_pods(stage: Stage) -> list[Claim]:
    """Play a gang that takes the room, and one that is held until that is free."""
    stage.set_up("scene-5", [NodeSpec("eight-cpus-5", cpus=8)])
    first = stage.create_ray_cluster(as_gang(_cluster(stage, "first")))
    stage.wait_whole(first, _SIZE)
    stage.display.say("first runs; held is created, which asks for no pods before it is admitted:")
    second = stage.create_ray_cluster(held(as_gang(_cluster(stage, "held"))))
    said = stage.wait_refused(second)
    waits = stage.has_no_pods(second)
    stage.display.pause()
    freed = stage.delete_ray_cluster(first)
    whole = stage.wait_whole(second, _SIZE)
    return [
        *waits,
        Claim(f"held says why: {said}"),
        Claim(f"held fully Running {whole - freed:.2f} s after room was freed, pods made anew"),
        stage.never_partial({first: _SIZE, second: _SIZE}),
    ]


def _cluster(stage: Stage, name: str) -> Json:
    return ray_cluster(stage.cluster.samples, name, workers=_SIZE - 1)

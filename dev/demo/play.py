"""Plays scenes on one cluster, and collects their claims."""

from __future__ import annotations

from collections.abc import Sequence

from demo.claims import Claim
from demo.display import Display, following
from demo.scenes import Scene
from demo.stage import Stage
from demo.world import World
from testbed.cluster import Cluster
from testbed.errors import TestbedError


def play(cluster: Cluster, scenes: Sequence[Scene], display: Display) -> bool:
    """Play scenes one after another, sum up, and tell whether all that is claimed holds.

    What the last scene leaves stays on the cluster.
    """
    summary: list[tuple[str, list[Claim]]] = []
    with World(cluster) as world:
        stage = Stage(cluster, world, display)
        for scene in scenes:
            title = f"Scene {scene.number}: {scene.title}"
            with display.scene(title, scene.look), following(world, display):
                claims = claims_of(scene, stage)
            summary.append((title, claims))
            if not all_hold(claims):
                break  # the stage is not as the next scene expects it
    for title, claims in summary:
        display.conclude(title, claims)
    everything = [claim for _, claims in summary for claim in claims]
    display.say(f"{sum(claim.holds for claim in everything)} of {len(everything)} claims hold")
    return all_hold(everything)


def claims_of(scene: Scene, stage: Stage) -> list[Claim]:
    """Play one scene; what it waited for in vain is a claim that does not hold."""
    try:
        return scene.play(stage)
    except (TestbedError, OSError) as error:
        return [Claim(str(error), holds=False)]


def all_hold(claims: Sequence[Claim]) -> bool:
    """Tell whether everything was as it must be."""
    return all(claim.holds for claim in claims)

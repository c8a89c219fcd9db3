"""The scene of an owner who creates, scales, suspends and resumes Ray clusters by commands."""

from __future__ import annotations

from demo.claims import Claim
from demo.stage import Stage
from testbed.history import Gang
from testbed.nodes import NodeSpec

_HEAD = "--head=cpus=2,memory=2Gi"


def managed_by_commands(stage: Stage) -> list[Claim]:
    """Play a day of an owner: of two clusters the second waits until the first is made smaller."""
    stage.set_up("scene-7", [NodeSpec("eight-cpus-7", cpus=8)])
    train = stage.owned("train")
    began = stage.muster("create", "train", _HEAD, "--group=workers,replicas=4,cpus=1,memory=1Gi")
    stage.wait_whole(train, 5)
    more = stage.owned("more")
    told = stage.muster("create", "more", _HEAD, "--group=workers,replicas=2,cpus=1,memory=1Gi")
    said = stage.wait_refused(more)
    stage.display.pause()
    return [
        Claim(f"before it creates train: {_first(began)}", holds="fits now" in began),
        Claim(f"before it creates more: {_first(told)}", holds="does not fit now" in told),
        Claim(f"more waits: {said}"),
        *_made_smaller(stage, train, more),
        *_suspended(stage, train),
    ]


def _made_smaller(stage: Stage, train: Gang, more: Gang) -> list[Claim]:
    stage.muster("scale", "train", "workers=2", "--yes")
    stage.wait_whole(more, 3)
    text = "train is scaled from 4 workers to 2, and more starts in their room"
    return [Claim(text, holds=stage.world.is_whole(train, 3))]


def _suspended(stage: Stage, train: Gang) -> list[Claim]:
    stage.muster("suspend", "train", "--yes")
    stage.wait_until(lambda: not stage.pods_of(train), "all pods of train to go")
    stage.muster("resume", "train")
    stage.wait_whole(train, 3)
    return [Claim("train is suspended, has no pods, and runs whole again once it is resumed")]


def _first(said: str) -> str:
    return said.strip().splitlines()[0]

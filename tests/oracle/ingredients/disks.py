"""Disks that pods name themselves: who writes keeps others off its node."""

from collections.abc import Sequence

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.model import Json, Scene

_KINDS = ("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd", "cinder")


class Disks(Ingredient):
    """On one node a disk has one pod that writes, or several that read."""

    name = "disks"
    reach = Reach.ROOM
    share = 0.5

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.3):
            _add(draw, pod)

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.35):
            _add(draw, pod)

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        wanted = _disks(pod)
        held = [disk for other in scene.on(node) for disk in _disks(other)] if wanted else []
        return any(_clash(one, other) for one in wanted for other in held)


def _add(draw: Draw, pod: Json) -> None:
    volumes = pod["spec"].setdefault("volumes", [])
    for kind in draw.random.sample(_KINDS, draw.random.choice((1, 1, 2))):
        volumes.append({"name": f"d{len(volumes)}", kind: _source(draw, kind)})


def _source(draw: Draw, kind: str) -> Json:
    name = draw.random.choice("pq")
    reads = {"readOnly": True} if draw.happens(0.4) else {}
    match kind:
        case "gcePersistentDisk":
            return {"pdName": name, **reads}
        case "iscsi":
            target = f"iqn.2026-01.example:{name}"
            return {"targetPortal": "10.0.0.1", "iqn": target, "lun": 0, **reads}
        case "rbd":
            monitors = draw.random.sample(("m1", "m2", "m3"), draw.random.randint(1, 2))
            return {"monitors": monitors, "image": name, **reads}
        case _:
            return {"volumeID": f"vol-{name}", **reads}


def _disks(pod: Json) -> list[tuple[str, Json]]:
    volumes = pod["spec"].get("volumes", [])
    return [(kind, each[kind]) for each in volumes for kind in _KINDS if kind in each]


def _clash(one: tuple[str, Json], other: tuple[str, Json]) -> bool:
    (kind, mine), (same, theirs) = one, other
    both_read = mine.get("readOnly", False) and theirs.get("readOnly", False)
    if kind != same:
        return False
    match kind:
        case "gcePersistentDisk":
            return bool(mine["pdName"] == theirs["pdName"]) and not both_read
        case "awsElasticBlockStore":
            return bool(mine["volumeID"] == theirs["volumeID"])
        case "iscsi":
            return bool(mine["iqn"] == theirs["iqn"]) and not both_read
        case "rbd":
            met = {*mine["monitors"]} & {*theirs["monitors"]}
            return bool(met) and mine["image"] == theirs["image"] and not both_read
        case _:
            return False

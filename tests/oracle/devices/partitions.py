"""Makes the GPUs of some worlds partitions, which consume counters of what they are parts of."""

from collections.abc import Sequence
from random import Random

from tests.oracle.draw import Draw
from tests.oracle.model import Json

PARTITIONS = "partitions"
MEMORY = 40
ENGINES = 4


def lay_partitions(chance: Random, draw: Draw, slices: Sequence[Json]) -> list[Json]:
    """Draw them into some worlds; returns the slices of counters that pools get for it."""
    if chance.random() > 0.35:
        return []
    pools: dict[tuple[str, int], list[Json]] = {}
    for each in slices:
        spec = each["spec"]
        if spec["driver"] == f"gpu.{draw.name}.example.com" and "nodeName" in spec:
            key = spec["pool"]["name"], spec["pool"]["generation"]
            pools.setdefault(key, []).append(each)
    return [_parted(chance, found) for found in pools.values()]


def _parted(chance: Random, pool: Sequence[Json]) -> Json:
    """Have devices of one generation of a pool consume counters; returns the slice of those."""
    sets = [f"gpu-{at}" for at in range(chance.choice((1, 1, 2)))]
    for each in pool:
        each["spec"]["pool"]["resourceSliceCount"] += 1
        for device in each["spec"]["devices"]:
            if chance.random() < 0.85:
                device["consumesCounters"] = [_consumed(chance, chance.choice(sets))]
    whole = {"memory": {"value": f"{MEMORY}Gi"}, "engines": {"value": str(ENGINES)}}
    spec = {key: pool[0]["spec"][key] for key in ("driver", "nodeName")}
    spec["pool"] = {**pool[0]["spec"]["pool"]}
    spec["sharedCounters"] = [{"name": name, "counters": whole} for name in sets]
    name = f"{pool[0]['metadata']['name']}-{chance.choice('az')}"
    return {**pool[0], "metadata": {"name": name}, "spec": spec}


def _consumed(chance: Random, name: str) -> Json:
    """Draw what a partition consumes: all of a GPU, a half, a quarter, or memory alone."""
    part = chance.choice((1, 2, 2, 4, 4))
    counters = {"memory": {"value": f"{MEMORY // part}Gi"}}
    if chance.random() < 0.7:
        counters["engines"] = {"value": str(ENGINES // part)}
    return {"counterSet": name, "counters": counters}

"""Draws what drivers publish in a world: slices of devices for its nodes, and classes of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.oracle.draw import Draw
from tests.oracle.model import Json, name_of

NUMA = "example.com/numa"
"""An attribute that all drivers use under one name."""

KINDS = ("gpu", "nic")
GIVING = 0.12
"""How often a device is another's from the beginning."""


@dataclass(frozen=True)
class Published:
    """The objects of a world's drivers, and the devices that are taken by no claim."""

    slices: list[Json]
    classes: list[Json]
    taken: list[Json]
    """Claims that devices were given to before."""
    oddities: frozenset[str]
    """What makes kube-scheduler refuse whole nodes, or Muster leave devices open."""


def driver(draw: Draw, kind: str) -> str:
    """Return the name of the driver of one kind of devices of the world."""
    return f"{kind}.{draw.name}.example.com"


def class_name(draw: Draw, kind: str) -> str:
    """Return the name of a class of the world."""
    return f"{draw.slot}-{draw.name}-{kind}"


def published(draw: Draw, nodes: Sequence[Json]) -> Published:
    """Draw all that drivers publish, and what is taken of it."""
    odd: set[str] = set()
    kinds = KINDS[: draw.random.choice((1, 1, 2))]
    slices = [
        each
        for node in nodes
        for kind in kinds
        if draw.happens(0.95)
        for each in _pool(draw, name_of(node), kind, odd)
    ]
    slices += draw.maybe(0.08, lambda: [_of_a_zone(draw)], [])
    return Published(slices, _classes(draw), _taken(draw, slices), frozenset(odd))


# ---- slices


def _pool(draw: Draw, node: str, kind: str, odd: set[str]) -> Iterator[Json]:
    """Draw the slices of a node's pool, of which one may be out of date or missing."""
    generation, parts = draw.random.choice((1, 1, 3)), draw.random.choice((1, 1, 1, 2))
    missing = draw.happens(0.04)
    if missing:
        odd.add("incomplete pool")
    number = 0
    for part in range(parts):
        devices = []
        for _ in range(draw.random.randint(2, 6 if kind == "gpu" else 3)):
            devices.append(_device(draw, kind, f"d{number}", odd))
            number += 1
        yield _slice(draw, node, kind, part, devices, generation, parts + missing)
    if draw.happens(0.15) and generation > 1:
        stale = [_device(draw, kind, f"d{at}", set()) for at in range(3)]
        yield _slice(draw, node, kind, parts, stale, generation - 1, 1)


def _slice(
    draw: Draw,
    node: str,
    kind: str,
    part: int,
    devices: list[Json],
    generation: int,
    of: int,
) -> Json:
    # By name the parts may come in another order than they are published in.
    name = f"{node}-{kind}-{draw.random.choice('abc')}{part}"
    pool = {"name": node, "generation": generation, "resourceSliceCount": of}
    spec = {"driver": driver(draw, kind), "pool": pool, "nodeName": node, "devices": devices}
    return cluster_object("ResourceSlice", name, spec)


def _of_a_zone(draw: Draw) -> Json:
    """A device that several nodes may reach."""
    expression = {"key": draw.zone, "operator": "In", "values": ["x"]}
    pool = {"name": f"{draw.name}-far", "generation": 1, "resourceSliceCount": 1}
    spec = {
        "driver": driver(draw, "gpu"),
        "pool": pool,
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]},
        "devices": [_device(draw, "gpu", "far", set())],
    }
    return cluster_object("ResourceSlice", f"{draw.slot}-{draw.name}-far", spec)


def _device(draw: Draw, kind: str, name: str, odd: set[str]) -> Json:
    attributes = {
        "type": {"string": draw.random.choice("XXY")},
        NUMA: {"int": draw.random.choice((0, 1))},
    }
    if draw.happens(0.02):
        odd.add("lacking attribute")
        del attributes[draw.random.choice(("type", NUMA))]
    device: Json = {
        "name": name,
        "attributes": attributes,
        "capacity": {"memory": {"value": draw.random.choice(("16Gi", "40Gi"))}},
    }
    if draw.happens(0.08):
        effect = draw.random.choice(("NoSchedule", "NoSchedule", "NoExecute", "None"))
        device["taints"] = [{"key": "example.com/sick", "value": "1", "effect": effect}]
    if kind == "gpu" and draw.happens(0.02):
        odd.add("shares")
        device["allowMultipleAllocations"] = True
    return device


# ---- classes and what is taken


def _classes(draw: Draw) -> list[Json]:
    of_driver = {kind: f'device.driver == "{driver(draw, kind)}"' for kind in KINDS}
    texts = {kind: [text] for kind, text in of_driver.items()}
    texts["large"] = [
        of_driver["gpu"],
        f'device.capacity["{driver(draw, "gpu")}"].memory.compareTo(quantity("40Gi")) >= 0',
    ]
    texts["any"] = []
    return [
        cluster_object(
            "DeviceClass",
            class_name(draw, name),
            {"selectors": [{"cel": {"expression": each}} for each in expressions]},
        )
        for name, expressions in texts.items()
    ]


def _taken(draw: Draw, slices: Sequence[Json]) -> list[Json]:
    """Draw claims of others, each of which has a device."""
    found: list[Json] = []
    for each in slices:
        for device in each["spec"]["devices"]:
            if "allowMultipleAllocations" not in device and draw.happens(GIVING):
                found.append(given(draw, f"taken-{len(found)}", each["spec"], device["name"]))
    return found


def given(draw: Draw, name: str, published_as: Json, device: str) -> Json:
    """Return a claim that was given this device."""
    kind = published_as["driver"].partition(".")[0]
    asked = {"name": "r", "exactly": {"deviceClassName": class_name(draw, kind)}}
    result = {
        "request": "r",
        "driver": published_as["driver"],
        "pool": published_as["pool"]["name"],
        "device": device,
    }
    claim = cluster_object(
        "ResourceClaim", f"{draw.pod_names}{name}", {"devices": {"requests": [asked]}}
    )
    claim["metadata"]["namespace"] = draw.namespaces[1]
    allocation: Json = {"devices": {"results": [result]}}
    if draw.happens(0.9):
        allocation["allocationTimestamp"] = "2026-01-01T00:00:00Z"
    if "nodeName" in published_as:
        term = {"key": "metadata.name", "operator": "In", "values": [published_as["nodeName"]]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [term]}]}
    claim["status"] = {"allocation": allocation}
    return claim


def cluster_object(kind: str, name: str, spec: Json) -> Json:
    """Return an object that is in no namespace."""
    metadata = {"name": name}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}

"""Has some worlds devices that several nodes reach, and claims that ask for them."""

from collections.abc import Sequence
from random import Random

from tests.oracle.devices.published import NUMA, Published, class_name, cluster_object
from tests.oracle.devices.shares import requests_of
from tests.oracle.draw import Draw
from tests.oracle.model import Json

FAR = "devices of several nodes"


def lay_far(chance: Random, draw: Draw, found: Published, specs: Sequence[Json]) -> frozenset[str]:
    """Draw them into some worlds: for all nodes of the world, or for those of a zone each."""
    if chance.random() > 0.3:
        return frozenset()
    driver, name = f"fab.{draw.name}.example.com", class_name(draw, "fab")
    by_zone = chance.random() < 0.4
    for key, value in [(draw.zone, each) for each in "xy"] if by_zone else [("world", draw.slot)]:
        found.slices.append(_slice(chance, f"{draw.slot}-{draw.name}-{value}", driver, key, value))
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    found.classes.append(cluster_object("DeviceClass", name, {"selectors": [selector]}))
    for asked in requests_of(specs):
        if chance.random() < 0.5:
            asked.pop("selectors", None)
            asked["deviceClassName"] = name
    return frozenset({FAR})


def _slice(chance: Random, name: str, driver: str, key: str, value: str) -> Json:
    expression = {"key": key, "operator": "In", "values": [value]}
    attributes = {NUMA: {"int": chance.choice((0, 1))}, "type": {"string": "X"}}
    spec = {
        "driver": driver,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]},
        "devices": [
            {"name": f"f{at}", "attributes": attributes} for at in range(chance.randint(1, 5))
        ],
    }
    return cluster_object("ResourceSlice", f"{name}-fab", spec)

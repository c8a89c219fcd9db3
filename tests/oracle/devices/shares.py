"""Makes GPUs of some worlds devices that several claims share, and has claims ask for capacity."""

from collections.abc import Iterator, Sequence
from random import Random
from uuid import UUID

from scheduling.model.devices.features import version_of
from testbed.recipes import chosen_kubernetes
from tests.oracle.devices.published import Published
from tests.oracle.draw import Draw
from tests.oracle.model import Json

SHARES = "shares"
_POLICIES: Sequence[Json | None] = (
    None,
    None,
    {"default": "10Gi"},
    {"default": "10Gi", "validValues": ["5Gi", "10Gi", "15Gi"]},
    {"default": "6Gi", "validRange": {"min": "4Gi", "max": "12Gi", "step": "2Gi"}},
    {"default": "4Gi", "validRange": {"min": "4Gi"}},
)


def lay_shares(
    chance: Random, draw: Draw, found: Published, specs: Sequence[Json]
) -> frozenset[str]:
    """Draw them into some worlds, with shares that are taken; before 1.36 there are none."""
    if chance.random() > 0.4 or version_of(chosen_kubernetes().rpartition(".")[0]) < (1, 36):
        return frozenset()
    drivers = f"gpu.{draw.name}.example.com"
    gpus = [each["spec"] for each in found.slices if each["spec"]["driver"] == drivers]
    for spec in gpus:
        for device in spec["devices"]:
            if chance.random() < 0.7:
                device["allowMultipleAllocations"] = True
                _lay_capacity(chance, device["capacity"])
                _share(chance, found.taken, (drivers, spec["pool"]["name"], device["name"]))
    for asked in requests_of(specs):
        if chance.random() < 0.6:
            memory = chance.choice(("3Gi", "5Gi", "8Gi", "8Gi", "12Gi", "16Gi"))
            more = {"cores": "1500m"} if chance.random() < 0.2 else {}
            asked["capacity"] = {"requests": {"memory": memory, **more}}
    return frozenset({SHARES})


def _lay_capacity(chance: Random, capacity: Json) -> None:
    policy = chance.choice(_POLICIES)
    if policy is not None:
        capacity["memory"]["requestPolicy"] = policy
    if chance.random() < 0.5:
        capacity["cores"] = {"value": "4", "requestPolicy": {"default": "500m"}}


def _share(chance: Random, taken: Sequence[Json], device: tuple[str, str, str]) -> None:
    """Make of claims that were given the device claims of a share of it."""
    for claim in taken:
        for result in claim["status"]["allocation"]["devices"]["results"]:
            if (result["driver"], result["pool"], result["device"]) == device:
                result["shareID"] = str(UUID(int=chance.getrandbits(128), version=4))
                result["consumedCapacity"] = {"memory": chance.choice(("2Gi", "6Gi", "16Gi"))}


def requests_of(specs: Sequence[Json]) -> Iterator[Json]:
    """Yield what claims ask for, alternatives included."""
    for spec in specs:
        for request in spec["devices"]["requests"]:
            yield from request.get("firstAvailable", [request.get("exactly")])

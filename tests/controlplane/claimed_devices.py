"""Devices of drivers that are only names: slices for the nodes of a plot, and claims of them."""

from collections.abc import Iterable

from tests.controlplane.plot import DEVICE_CLASSES, RESOURCE_SLICES, Plot
from tests.controlplane.rayclusters import Json


def driver(plot: Plot, kind: str = "gpu") -> str:
    """The driver of one kind of devices of a plot."""
    return f"{kind}.{plot.name}.example.com"


def add_class(plot: Plot, kind: str = "gpu", resource: str = "") -> str:
    """A class of all devices of a driver, which may give an extended resource; returns its name."""
    selector = {"cel": {"expression": f'device.driver == "{driver(plot, kind)}"'}}
    named = {"extendedResourceName": resource} if resource else {}
    plot.add_of_no_namespace(DEVICE_CLASSES, kind, {"selectors": [selector], **named})
    return f"{plot.name}-{kind}"


def add_slice(
    plot: Plot, node: str, devices: Iterable[str], kind: str = "gpu", generation: int = 1
) -> None:
    """What a driver publishes of one node: a pool of one slice."""
    pool = {"name": plot.node(node), "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": driver(plot, kind), "pool": pool, "nodeName": plot.node(node)}
    found = [{"name": each} for each in devices]
    name = f"{node}-{kind}-{generation}"
    plot.add_of_no_namespace(RESOURCE_SLICES, name, {**spec, "devices": found})


def add_partitions(plot: Plot, node: str, **parts: int) -> None:
    """One GPU of four engines with its partitions: so many engines each takes, in this order."""
    pool = {"name": plot.node(node), "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": driver(plot), "pool": pool, "nodeName": plot.node(node)}
    shared = [{"name": "gpu-0", "counters": {"engines": {"value": "4"}}}]
    plot.add_of_no_namespace(RESOURCE_SLICES, f"{node}-sets", {**spec, "sharedCounters": shared})
    devices = [
        {
            "name": name.replace("_", "-"),
            "attributes": {"engines": {"int": engines}},
            "consumesCounters": [
                {"counterSet": "gpu-0", "counters": {"engines": {"value": str(engines)}}}
            ],
        }
        for name, engines in parts.items()
    ]
    plot.add_of_no_namespace(RESOURCE_SLICES, f"{node}-parts", {**spec, "devices": devices})


def add_shared(plot: Plot, node: str, **memory: str) -> None:
    """Devices with so much memory each, of which several claims may have shares."""
    pool = {"name": plot.node(node), "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver(plot), "pool": pool, "nodeName": plot.node(node)}
    devices = [
        {
            "name": name.replace("_", "-"),
            "allowMultipleAllocations": True,
            "capacity": {"memory": {"value": amount}},
        }
        for name, amount in memory.items()
    ]
    plot.add_of_no_namespace(RESOURCE_SLICES, f"{node}-shared", {**spec, "devices": devices})


def of_memory(of_class: str, memory: str) -> Json:
    """A share with so much memory of one device."""
    asked = {"deviceClassName": of_class, "capacity": {"requests": {"memory": memory}}}
    return {"name": "devices", "exactly": asked}


def of_engines(plot: Plot, of_class: str, engines: int) -> Json:
    """One partition of so many engines."""
    text = f'device.attributes["{driver(plot)}"].engines == {engines}'
    asked = {"deviceClassName": of_class, "selectors": [{"cel": {"expression": text}}]}
    return {"name": "devices", "exactly": asked}


def drop_slice(plot: Plot, node: str, kind: str = "gpu", generation: int = 1) -> None:
    """Take such a slice away."""
    with plot.cluster.api.session() as session:
        session.call("DELETE", f"{RESOURCE_SLICES}/{plot.name}-{node}-{kind}-{generation}")


def add_template(plot: Plot, name: str, *requests: Json) -> None:
    """A template of claims."""
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    plot.create({"kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": spec})


def request(of_class: str, count: int = 1, name: str = "devices") -> Json:
    """So many devices of a class."""
    return {"name": name, "exactly": {"deviceClassName": of_class, "count": count}}


def asking(*templates: str) -> Json:
    """What a pod spec says to have a claim from each template."""
    claims = [{"name": each, "resourceClaimTemplateName": each} for each in templates]
    return {"resourceClaims": claims}


def given(plot: Plot, kind: str = "gpu") -> list[str]:
    """The devices of a driver that pods were given, sorted."""
    found = []
    for claim in plot.all("ResourceClaim"):
        allocation = claim.get("status", {}).get("allocation", {})
        results = allocation.get("devices", {}).get("results", ())
        found += [e["device"] for e in results if e["driver"] == driver(plot, kind)]
    return sorted(found)

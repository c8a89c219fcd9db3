"""Draws what pods of a world claim: the specs of claims and of their templates."""

from typing import Any

from scheduling.model.devices.features import version_of
from testbed.recipes import chosen_kubernetes
from tests.oracle.devices.published import NUMA, class_name, driver
from tests.oracle.draw import Draw
from tests.oracle.model import Json

TOLERANT = [{"key": "example.com/sick", "operator": "Exists"}]


def claim_spec(draw: Draw) -> Json:
    """Draw the spec of a claim."""
    requests = [_request(draw, f"r{at}") for at in range(draw.random.choice((1, 1, 1, 2)))]
    devices: Json = {"requests": requests}
    if draw.happens(0.2):
        devices["constraints"] = [_constraint(draw, requests)]
    return {"devices": devices}


def contending_specs(draw: Draw) -> list[Json]:
    """Draw specs of claims between which the order of allocation matters."""
    x, y = _of_type(draw, "X"), _of_type(draw, "Y")
    pair = {"requests": [{"name": "r", "exactly": _gpu(draw, count=2)}]}
    found: list[Json] = [
        {"requests": [{"name": "r", "firstAvailable": [{"name": "x", **x}, {"name": "y", **y}]}]},
        {"requests": [{"name": "r", "exactly": x}]},
        {"requests": [{"name": "r", "exactly": y}]},
        {"requests": [{"name": "r", "exactly": _gpu(draw)}]},
        {"requests": [{"name": "r", "exactly": _gpu(draw, tolerations=TOLERANT)}]},
        {**pair, "constraints": [{"matchAttribute": NUMA}]},
    ]
    return [{"devices": each} for each in draw.random.sample(found, 3)]


def _of_type(draw: Draw, name: str) -> Json:
    own = f'device.attributes["{driver(draw, "gpu")}"]'
    expression = f'"type" in {own} && {own}.type == "{name}"'
    return _gpu(draw, selectors=[{"cel": {"expression": expression}}])


def _gpu(draw: Draw, **more: Any) -> Json:
    return {"deviceClassName": class_name(draw, "gpu"), **more}


def _constraint(draw: Draw, requests: list[Json]) -> Json:
    # Before 1.36 the API server refuses a constraint without an attribute to match.
    old = version_of(chosen_kubernetes().rpartition(".")[0]) < (1, 36)
    key = "distinctAttribute" if draw.happens(0.25) and not old else "matchAttribute"
    concerned = draw.maybe(0.3, lambda: [draw.random.choice(requests)["name"]], [])
    return {key: NUMA, **({"requests": concerned} if concerned else {})}


def _request(draw: Draw, name: str) -> Json:
    if draw.happens(0.25):
        number = draw.random.choice((2, 2, 3))
        found = [{"name": f"a{at}", **_asked(draw)} for at in range(number)]
        return {"name": name, "firstAvailable": found}
    return {"name": name, "exactly": _asked(draw)}


def _asked(draw: Draw) -> Json:
    """Draw a class, selectors and a number."""
    kind = draw.random.choice(("gpu", "gpu", "gpu", "gpu", "nic", "large", "any"))
    asked: Json = {"deviceClassName": class_name(draw, kind)}
    if draw.happens(0.01):
        asked["deviceClassName"] = class_name(draw, "unknown")
    if draw.happens(0.35):
        text = _selector(draw, "nic" if kind == "nic" else "gpu")
        asked["selectors"] = [{"cel": {"expression": text}}]
    if draw.happens(0.07):
        asked["allocationMode"] = "All"
    else:
        asked["count"] = draw.random.choice((1, 1, 1, 1, 1, 2, 2, 3))
    if draw.happens(0.2):
        asked["tolerations"] = TOLERANT
    return asked


def _selector(draw: Draw, kind: str) -> str:
    """Draw a selector; some fail on devices that lack the attribute."""
    own, kinds = f'device.attributes["{driver(draw, kind)}"]', draw.random.choice("XXY")
    domain, _, name = NUMA.partition("/")
    numa = f'device.attributes["{domain}"]'
    return draw.random.choice(
        (
            f'{own}.type == "{kinds}"',
            f'"type" in {own} && {own}.type == "{kinds}"',
            f'"{name}" in {numa} && {numa}.{name} == {draw.random.choice((0, 1))}',
            f"{numa}.{name} == {draw.random.choice((0, 1))}",
            f'device.capacity["{driver(draw, kind)}"].memory.isLessThan(quantity("40Gi"))',
        )
    )

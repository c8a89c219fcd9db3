"""Has pods of a world ask for extended resources, that its classes or device plugins give."""

from collections.abc import Sequence
from random import Random

from scheduling.model.amounts import OF_CLASS
from tests.oracle.devices.published import class_name
from tests.oracle.draw import Draw
from tests.oracle.model import Json

EXTENDED = "extended resources"


def lay_extended(
    chance: Random, draw: Draw, nodes: Sequence[Json], templates: Sequence[Json]
) -> set[str]:
    """Draw them into some worlds; `templates` are pods that stand for several each."""
    if chance.random() > 0.4:
        return set()
    classes = [each for each in draw.objects if each["kind"] == "DeviceClass"]
    names = _named(chance, draw, classes)
    for node in nodes:
        _list(chance, node, names)
    for pod in templates:
        if chance.random() < 0.6:
            _ask(chance, pod, names)
    return {EXTENDED}


def _named(chance: Random, draw: Draw, classes: Sequence[Json]) -> list[str]:
    """Give some classes a name of a resource, two of them perhaps the same."""
    kinds = chance.choice((["gpu"], ["gpu", "nic"], ["large", "gpu"]))
    own = f"{draw.slot}-{draw.name}.example.com/"
    named = {class_name(draw, kind): f"{own}{kind}" for kind in kinds}
    if kinds[0] == "large" and chance.random() < 0.5:
        named = dict.fromkeys(named, f"{own}same")
    for each in classes:
        if each["metadata"]["name"] in named:
            each["spec"]["extendedResourceName"] = named[each["metadata"]["name"]]
    implicit = class_name(draw, chance.choice(("gpu", "gpu", "nic", "any")))
    return [*sorted(set(named.values())), f"{OF_CLASS}{implicit}"]


def _list(chance: Random, node: Json, names: Sequence[str]) -> None:
    """Have a device plugin list a resource on a node, of which it may have none now."""
    for name in names:
        if chance.random() < 0.25 and not name.startswith(OF_CLASS):
            for listed in (node["status"]["capacity"], node["status"]["allocatable"]):
                listed[name] = str(chance.choice((0, 1, 2, 3)))


def _ask(chance: Random, pod: Json, names: Sequence[str]) -> None:
    """Have containers of a pod ask for some, init containers and side-cars among them."""
    spec, number = pod["spec"], chance.choice((1, 1, 1, 1, 2))
    asked = chance.sample(names, min(len(names), chance.choice((1, 1, 1, 2))))
    spec["containers"] += [{"name": f"more-{at}", "image": "none"} for at in range(1, number)]
    if chance.random() < 0.25:
        spec["initContainers"] = [
            {"name": f"init-{at}", "image": "none", **_lasting(chance)}
            for at in range(chance.choice((1, 2)))
        ]
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        for name in asked:
            if chance.random() < 0.75:
                amount = str(chance.choice((1, 1, 1, 1, 1, 2)))
                for side in ("requests", "limits"):
                    container.setdefault("resources", {}).setdefault(side, {})[name] = amount


def _lasting(chance: Random) -> Json:
    return {"restartPolicy": "Always"} if chance.random() < 0.4 else {}

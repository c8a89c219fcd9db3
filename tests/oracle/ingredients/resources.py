"""How much pods ask for: containers, init containers, side-cars, the pod as a whole, and slots."""

from collections.abc import Sequence

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.model import Json, Scene

GPU = "nvidia.com/gpu"
_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


class Resources(Ingredient):
    """All that is bound to a node must fit into what it has to give."""

    name = "resources"
    reach = Reach.ROOM

    def add_to_nodes(self, draw: Draw, nodes: Sequence[Json]) -> None:
        for node in nodes:
            amounts = {
                "cpu": str(draw.random.choice((4, 8, 16))),
                "memory": f"{draw.random.choice((8, 16))}Gi",
                "pods": str(draw.random.choice((3, 5, 110))),
                "ephemeral-storage": f"{draw.random.choice((2, 10))}Gi",
                **draw.maybe(0.6, lambda: {GPU: str(draw.random.choice((2, 4, 8)))}, {}),
            }
            node["status"].update({"capacity": amounts, "allocatable": amounts})

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        _ask(draw, pod["spec"], 2)

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        _ask(draw, pod["spec"], 3)

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        free = {name: _amount(text) for name, text in node["status"]["allocatable"].items()}
        for other in scene.on(node):
            for name, amount in requests(other).items():
                free[name] = free.get(name, 0) - amount
        return any(amount > free.get(name, 0) for name, amount in requests(pod).items() if amount)


# ---- what is drawn


def _ask(draw: Draw, spec: Json, most: int) -> None:
    amounts = {
        "cpu": str(draw.random.randint(0, most)),
        "memory": f"{draw.random.randint(0, most)}Gi",
        **draw.maybe(0.15, lambda: {"ephemeral-storage": "1Gi"}, {}),
        **draw.maybe(0.2, lambda: {GPU: str(draw.random.randint(1, most))}, {}),
    }
    limits = {name: amount for name, amount in amounts.items() if name == GPU}
    spec["containers"][0]["resources"] = {"requests": amounts, "limits": limits}
    if draw.happens(0.2):
        spec["initContainers"] = [_init(draw, at) for at in range(draw.random.randint(1, 2))]
    if draw.happens(0.06):
        _ask_as_a_whole(draw, spec)


def _init(draw: Draw, at: int) -> Json:
    return {
        "name": f"i{at}",
        "image": "none",
        "resources": {"requests": {"cpu": str(draw.random.randint(1, 3))}},
        **draw.maybe(0.5, lambda: {"restartPolicy": "Always"}, {}),
    }


def _ask_as_a_whole(draw: Draw, spec: Json) -> None:
    """Ask for enough at the level of the pod: less than its containers is refused."""
    spec["resources"] = {"requests": {"cpu": str(draw.random.randint(3, 5))}}
    for each in (*spec["containers"], *spec.get("initContainers", ())):
        each["resources"]["requests"]["cpu"] = "1"


# ---- how it is judged


def requests(pod: Json) -> dict[str, int]:
    """Return what kube-scheduler counts for a pod, its slot included."""
    spec = pod["spec"]
    inits = spec.get("initContainers", [])
    main = [_in_use(each, pod) for each in spec["containers"]]
    asked = [*main, *(_asked(each) for each in inits)]
    total: dict[str, int] = {"pods": 1}
    for name in {name for each in asked for name in each}:
        steady = sum(each.get(name, 0) for each in main)
        side_cars = peak = 0
        for each in inits:
            amount = _asked(each).get(name, 0)
            peak = max(peak, side_cars + amount)
            side_cars += amount if each.get("restartPolicy") == "Always" else 0
        total[name] = max(steady + side_cars, peak)
    return {**total, **_asked(spec)}


def _in_use(container: Json, pod: Json) -> dict[str, int]:
    """Return the most of what a container asks for, was given, and runs with."""
    reported = pod.get("status", {}).get("containerStatuses", [])
    sources = [_asked(container)]
    for status in (each for each in reported if each["name"] == container["name"]):
        sources += [_amounts(status.get("allocatedResources", {})), _asked(status)]
    return {name: max(s.get(name, 0) for s in sources) for name in {n for s in sources for n in s}}


def _asked(holder: Json) -> dict[str, int]:
    return _amounts(holder.get("resources", {}).get("requests", {}))


def _amounts(texts: dict[str, str]) -> dict[str, int]:
    return {name: _amount(text) for name, text in texts.items()}


def _amount(text: str) -> int:
    unit = text[-2:]
    return int(text[:-2]) * _UNITS[unit] if unit in _UNITS else int(text)

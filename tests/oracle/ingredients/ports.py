"""Host ports, with protocol and address."""

from collections.abc import Sequence

from tests.oracle.draw import Draw
from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.model import Json, Scene

_ADDRESSES = ("0.0.0.0", "10.0.0.1", "10.0.0.2")


class Ports(Ingredient):
    """A node gives a port of one protocol and address to one pod."""

    name = "host ports"
    reach = Reach.ROOM
    share = 0.6

    def add_to_resident(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.25):
            _add(draw, pod["spec"])

    def add_to_member(self, draw: Draw, pod: Json, nodes: Sequence[Json]) -> None:
        if draw.happens(0.3):
            _add(draw, pod["spec"])

    def refuses(self, pod: Json, node: Json, scene: Scene) -> bool:
        wanted = _ports(pod)
        used = [port for other in scene.on(node) for port in _ports(other)] if wanted else []
        return any(_clash(one, other) for one in wanted for other in used)


def _add(draw: Draw, spec: Json) -> None:
    numbers = draw.random.sample((8080, 8081), draw.random.randint(1, 2))
    spec["containers"][0]["ports"] = [_port(draw, number) for number in numbers]
    if draw.happens(0.2):
        spec["hostNetwork"] = True


def _port(draw: Draw, number: int) -> Json:
    return {
        "containerPort": number,
        "hostPort": number,
        **draw.maybe(0.2, lambda: {"protocol": "UDP"}, {}),
        **draw.maybe(0.4, lambda: {"hostIP": draw.random.choice(_ADDRESSES)}, {}),
    }


def _ports(pod: Json) -> list[tuple[str, str, int]]:
    return [
        (port.get("hostIP", "0.0.0.0"), port.get("protocol", "TCP"), port["hostPort"])
        for container in pod["spec"]["containers"]
        for port in container.get("ports", [])
        if port.get("hostPort")
    ]


def _clash(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    same_address = one[0] == other[0] or "0.0.0.0" in (one[0], other[0])
    return same_address and one[1:] == other[1:]

"""What tests of preemption do in a world: choose victims as a cycle would, and see them end."""

import contextlib
from collections.abc import Callable, Iterable, Iterator

from coordinator.messages.events import WatchLost, WatchRecovered
from coordinator.state.cycle.preemptible import parts_of
from coordinator.state.cycle.preemption_trials import propose
from scheduling.model.preemption import GangPart, Preemption
from tests.coordinator.builders import Json
from tests.coordinator.world import World, key


def parts(world: World, name: str) -> list[GangPart]:
    """What could be taken from a gang now, its minimum first."""
    leader = world.leader
    leader.state.known.cycles.parts.clear()
    found = [
        each for each in parts_of(leader.state.known, leader._moment()) if each.gang == key(name)
    ]
    return sorted(found, key=lambda part: part.replica)


def choose(world: World, preemptor: str, *chosen: GangPart) -> None:
    """Have a cycle choose these parts for a gang that waits."""
    leader = world.leader
    propose(leader.state.known, [Preemption(key(preemptor), chosen)], leader._moment())
    leader.handle([])


def choose_whole(world: World, preemptor: str, *victims: str) -> None:
    """Have a cycle choose whole gangs."""
    choose(world, preemptor, *(each for name in victims for each in parts(world, name)))


def act_until(world: World, happened: Callable[[], object]) -> None:
    """Carry out what is asked for, action by action, until something has happened."""
    leader = world.leader
    while not happened():
        leader.act()
        leader.hear_all()


def go_until(world: World, happened: Callable[[], object], *, steps: int = 400) -> None:
    """Have everybody go on, the leader action by action, until something has happened."""
    leader = world.leader
    for _ in range(steps):
        if happened():
            return
        world.kuberay()
        leader.hear_all()
        leader.tick()
        leader.cycle()
        if leader.todo and not happened():
            leader.act()
    raise AssertionError("it does not happen")


@contextlib.contextmanager
def out_of_sight(world: World, watch: str = "raypods") -> Iterator[None]:
    """A watch of the leader is down until the block ends."""
    world.leader.handle([WatchLost(watch)])
    yield
    world.leader.handle([WatchRecovered(watch)])


def ending(world: World, name: str) -> list[Json]:
    """What the record of a gang says is being stopped."""
    found: list[Json] = world.status(name).get("evictions", [])
    return found


def condition(world: World, name: str, kind: str) -> Json:
    found: dict[str, Json] = {each["type"]: each for each in world.status(name)["conditions"]}
    return found.get(kind, {})


def terminating(world: World, name: str) -> list[str]:
    pods = (pod for pod in world.pods(name) if "deletionTimestamp" in pod["metadata"])
    return sorted(pod["metadata"]["labels"]["ray.io/group"] for pod in pods)


def names_of(pods: Iterable[Json]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in pods)

"""Makes the recordings of this folder: `make recordings`.

Each is of a cluster in memory, with the real state machine and executor, and is played again by
`test_recordings.py`. They are made anew where an action is meant to be another one than before.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from coordinator.gang.held_start.foresight import foresee
from coordinator.messages.actions import Action
from coordinator.messages.events import Event
from coordinator.replay.lines import start_line, step_line
from coordinator.state_settings import StateSettings
from kube.objects import names
from runtime.controller.moment import Moment
from runtime.program import log_json
from tests.coordinator.builders import gang_of, node, ray_cluster, template
from tests.coordinator.held import held_gang
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.replica import Replica
from tests.coordinator.world import World, name_of

FOLDER = Path(__file__).parent / "recordings"
MUSTER = "a test"
IN_TEAM = {names.OPT_IN: "true", names.QUEUE: "team"}


class Tape:
    """The lines of what one replica is told and answers, from its start."""

    def __init__(self, replica: Replica) -> None:
        replica.restart()
        state = replica.state
        state.known.foresee = foresee
        self.settings = StateSettings(
            state.known.patience,
            state.known.allowed,
            state.known.cache.home,
            state.known.waiting_limit.most,
            state.known.profiles,
            state.known.guard,
            state.known.gpu_pools,
            state.known.cache.node_requests.allowed,
            (),
        )
        self.lines = [start_line(MUSTER, self.settings)]
        self._handle = state.handle
        cast(Any, state).handle = self._recorded

    def _recorded(self, events: list[Event], moment: Moment) -> list[Action]:
        actions = self._handle(events, moment)
        if events or actions:
            self.lines.append(step_line(len(self.lines), moment, events, actions))
        return actions

    def write(self, path: Path) -> Path:
        """Write what there is by now."""
        path.write_bytes(b"".join(self.lines))
        return path


def taped(world: World) -> Tape:
    """Record the leader of a world from its next start on, which is now."""
    tape = Tape(world.leader)
    world.elect(0)
    return tape


def lost_worker() -> Tape:
    """A worker is lost and comes back to its slot; then its node goes, and it moves."""
    world = World(node("n1", cpu=2), node("n2", cpu=2))
    tape = taped(world)
    world.create(gang_of("a", 1))
    world.settle(seconds=10)
    lost = next(pod for pod in world.pods("a") if "workers" in name_of(pod))
    world.delete("pods", name_of(lost))
    world.settle(seconds=10)
    [used] = world.bound("a")
    world.delete("nodes", used)
    for pod in world.pods("a"):
        world.delete("pods", name_of(pod))
    world.settle(seconds=10)
    return tape


def preempted() -> Tape:
    """A gang waits for quota, and one of lower priority ends for it."""
    lower = {"withinQueue": "LowerPriority"}
    world = World(node("n1", cpu=8), queue("team", cpu=2, preemption=lower))
    tape = taped(world)
    world.create(gang_of("low", 1, labels=IN_TEAM))
    world.settle()
    world.create(ray_cluster("high", head=template(priority=10), labels=IN_TEAM))
    world.settle(seconds=2)
    return tape


def held() -> Tape:
    """A held gang waits for a node that comes, and is deleted after its start."""
    world = World(node("n1", cpu=1))
    tape = taped(world)
    world.create(held_gang("a", 1))
    world.settle(seconds=10)
    world.create(node("n2", cpu=4))
    world.settle(seconds=10)
    world.delete("rayclusters", "a")
    world.settle(seconds=20)
    return tape


RECORDINGS: dict[str, Callable[[], Tape]] = {
    "lost-worker": lost_worker,
    "preempted": preempted,
    "held": held,
}


def path_of(name: str) -> Path:
    """Where a recording is."""
    return FOLDER / f"{name}.jsonl"


if __name__ == "__main__":
    log_json("error")
    for name, make in RECORDINGS.items():
        make().write(path_of(name))

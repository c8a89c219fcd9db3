"""A watch that is dead without a word is opened again, and no other is."""

import asyncio
from dataclasses import dataclass, field

import pytest

from coordinator.shell import suspicion
from coordinator.shell.suspicion import FIRST_OVERDUE, OVERDUE, OWN_WRITE, STALE, Suspicion
from tests.coordinator.builders import gang_of, node
from tests.coordinator.world import World
from tests.kube.fake_api import eventually


@dataclass
class Heard:
    """A watch, as far as it is asked about."""

    last_contact: float | None = 0.0
    heard: bool = True
    bookmarks: bool = True
    reopened: int = 0

    def reopen(self) -> bool:
        self.reopened += 1
        return True


@dataclass
class Times:
    now: float = 0.0
    watches: dict[str, Heard] = field(
        default_factory=lambda: {name: Heard() for name in ("gangs", "raypods", "nodes", "pods")}
    )

    def suspects(self) -> list[str]:
        """The watches that were opened again since this was asked last."""
        found = [name for name, each in self.watches.items() if each.reopened]
        for each in self.watches.values():
            each.reopened = 0
        return found


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture
def suspecting(times: Times) -> Suspicion:
    return Suspicion(times.watches, lambda: times.now)


def test_a_watch_that_does_not_tell_of_a_write_of_our_own_is_opened_again_once(
    times: Times, suspecting: Suspicion
) -> None:
    times.now = 20.0
    suspecting.wrote("raypods", sent=20.0)
    suspecting.wrote("raypods", sent=22.0)
    times.now = 20.0 + OWN_WRITE - 0.1
    suspecting.look()
    assert times.suspects() == []
    times.now = 20.0 + OWN_WRITE
    suspecting.look()
    suspecting.look()
    assert times.suspects() == ["raypods"]


def test_a_watch_that_tells_of_it_is_left_alone(times: Times, suspecting: Suspicion) -> None:
    """Also where it told of it before the answer came."""
    suspecting.wrote("gangs", sent=20.0)
    times.watches["gangs"].last_contact = 20.01
    times.now = 40.0
    suspecting.look()
    assert times.suspects() == []
    suspecting.wrote("gangs", sent=40.0)
    times.now = 46.0
    suspecting.look()
    assert times.suspects() == ["gangs"], "what it told before counts for no later write"


def test_what_a_placement_rests_on_is_not_old(times: Times, suspecting: Suspicion) -> None:
    times.now = STALE + 1
    times.watches["pods"].last_contact = times.now - 1
    suspecting.placed()
    assert times.suspects() == ["nodes"]
    times.watches["nodes"].heard = False
    suspecting.placed()
    assert times.suspects() == [], "it was opened again already, and nothing has changed"


def test_a_bookmark_that_is_overdue_is_one_for_each_watch(
    times: Times, suspecting: Suspicion
) -> None:
    times.now = OVERDUE
    suspecting.look()
    assert times.suspects() == []
    times.now = OVERDUE + 1
    times.watches["nodes"].last_contact = 60.0
    times.watches["pods"].last_contact = None
    suspecting.look()
    assert times.suspects() == ["gangs", "raypods"]


def test_the_first_bookmark_of_a_watch_may_come_later(times: Times, suspecting: Suspicion) -> None:
    times.watches = {"gangs": Heard(bookmarks=False)}
    suspecting = Suspicion(times.watches, lambda: times.now)
    times.now = FIRST_OVERDUE
    suspecting.look()
    assert times.suspects() == []
    times.now = FIRST_OVERDUE + 1
    suspecting.look()
    assert times.suspects() == ["gangs"]


async def test_it_looks_again_and_again(
    times: Times, suspecting: Suspicion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suspicion, "LOOK_EVERY", 0.001)
    times.now = OVERDUE + 1
    looking = asyncio.create_task(suspecting.run())
    await eventually(lambda: times.watches["gangs"].reopened >= 2)
    looking.cancel()


def test_a_write_to_a_pod_is_owed_by_the_watch_of_ray_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of a pod for its patches has no labels."""
    world, told = World(node("n1", cpu=2)), set[str]()

    def note(_: Suspicion, watch: str, sent: float) -> None:
        told.add(watch)

    monkeypatch.setattr(Suspicion, "wrote", note)
    world.create(gang_of("a", 1))
    world.settle(seconds=5)
    assert told == {"gangs", "raypods"}

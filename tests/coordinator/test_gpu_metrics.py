"""Metrics of GPUs move: what is free, reserved and stranded, holes, and GPU-seconds for nothing."""

import pytest

from coordinator.messages.actions import ReleasePod
from tests.coordinator.builders import GPU, gang_of, group, node, ray_cluster
from tests.coordinator.scraping import scrape_world, value
from tests.coordinator.world import World

LABEL = "nvidia.com/gpu.product"
H100 = {LABEL: "H100"}


def gpu_gang(name: str, workers: int) -> dict[str, object]:
    return ray_cluster(name, group("workers", workers, cpu=1, gpu=4))


def gpus(what: str, pool: str = "H100") -> float:
    return value(f"muster_gpus_{what}", pool=pool, resource=GPU)


def holes(pool: str = "H100") -> list[float]:
    return [value("muster_holes", pool=pool, resource=GPU, size=size) for size in "1248"]


def placed_and_not_released() -> World:
    """A gang of two workers with 4 GPUs each, whose placement is written."""
    world = World(node("n1", gpu=8, cpu=64, labels=H100), node("n2", gpu=8, cpu=64, labels=H100))
    world.create(gpu_gang("a", 2))
    world.kuberay()
    leader = world.leader
    leader.hear_all()
    leader.act_all_but(ReleasePod)
    leader.cycle()
    leader.act_all_but(ReleasePod)
    return world


async def test_muster_gpus_allocatable_moves() -> None:
    world = World(node("n1", gpu=8, labels=H100), node("n2", gpu=4))
    await scrape_world(world)
    assert (gpus("allocatable"), gpus("allocatable", pool="none")) == (8, 4)
    world.create(node("n3", gpu=8, labels=H100))
    world.settle()
    await scrape_world(world)
    assert gpus("allocatable") == 16


async def test_muster_gpus_free_moves() -> None:
    world = World(node("n1", gpu=8, cpu=64, labels=H100))
    await scrape_world(world)
    assert gpus("free") == 8
    world.create(gpu_gang("a", 1))
    world.settle(seconds=5)
    await scrape_world(world)
    assert gpus("free") == 4


async def test_muster_gpus_reserved_moves() -> None:
    """From the placement until the pods are on their nodes."""
    world = placed_and_not_released()
    await scrape_world(world)
    assert (gpus("reserved"), gpus("free")) == (8, 8)
    world.settle(seconds=5)
    await scrape_world(world)
    assert (gpus("reserved"), gpus("free")) == (0, 8)


async def test_muster_gpus_unschedulable_moves() -> None:
    world = World(node("n1", gpu=8, labels=H100, cordoned=True), node("n2", gpu=4, labels=H100))
    await scrape_world(world)
    assert (gpus("unschedulable"), gpus("free")) == (8, 4)


async def test_muster_gpus_stranded_moves() -> None:
    """Pods take 1 CPU for 4 GPUs, and gangs without GPUs take what CPU the other node has."""
    world = World(node("n1", gpu=8, cpu=64, labels=H100))
    world.create(gpu_gang("a", 1))
    world.settle(seconds=5)
    await scrape_world(world)
    assert gpus("stranded") == 0
    world.create(gang_of("cpu", 61))
    world.settle(seconds=5)
    await scrape_world(world)
    assert gpus("free") == gpus("stranded") == 4


async def test_muster_holes_moves() -> None:
    world = World(node("n1", gpu=8, cpu=64, labels=H100))
    await scrape_world(world)
    assert holes() == [8, 4, 2, 1]
    world.create(gpu_gang("a", 1))
    world.settle(seconds=5)
    await scrape_world(world)
    assert holes() == [4, 2, 1, 0]


async def test_only_the_leader_tells_of_gpus() -> None:
    """Others do not know what is reserved, so holes of theirs would be promised twice."""
    world = placed_and_not_released()
    world.leader.resign()
    await scrape_world(world)
    assert gpus("allocatable") == 0
    assert sum(holes()) == 0


async def test_muster_gpu_seconds_reserved_idle_total_moves() -> None:
    world = placed_and_not_released()
    world.api.now += 10
    await scrape_world(world)
    seconds = "muster_gpu_seconds_reserved_idle_total"
    assert value(seconds, queue="default") == pytest.approx(80)
    world.settle(seconds=1)
    await scrape_world(world)
    once_bound = value(seconds, queue="default")
    world.settle(seconds=1000)
    await scrape_world(world)
    assert value(seconds, queue="default") == once_bound


async def test_muster_gpu_seconds_incomplete_total_moves() -> None:
    """The head and a worker are on their nodes, the release of the other one hangs."""
    world = placed_and_not_released()
    world.leader.act()
    world.leader.act()
    world.schedule()
    world.leader.hear_all()
    world.api.now += 1
    world.leader.tick()
    await scrape_world(world)
    seconds = "muster_gpu_seconds_incomplete_total"
    before = value(seconds, queue="default")
    world.api.now += 10
    await scrape_world(world)
    assert value(seconds, queue="default") == before + 40
    world.settle(seconds=1)
    await scrape_world(world)
    whole = value(seconds)
    world.settle(seconds=1000)
    await scrape_world(world)
    assert value(seconds) == whole

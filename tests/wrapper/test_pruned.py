"""CodeFlare's own definition of AppWrapper drops what Muster writes beside CodeFlare's fields."""

from tests.wrapper.world import World, codeflare, config_map, job
from wrapper.status import INFORM_EVERY

KEPT = frozenset({"phase", "resettingCount", "conditions", "componentStatus"})
"""Of the status of CodeFlare's AppWrapper v1beta2, as its own definition has it."""


def pruned() -> World:
    world = World()
    world.api.keeps = KEPT
    world.api.put("appwrappers", codeflare(config_map(), job()))
    world.settle(2)
    return world


def writes(world: World, seconds: float) -> int:
    """How often the status is written within a time."""
    before = world.api.statuses
    world.settle(seconds)
    return world.api.statuses - before


def queued(world: World, message: str, name: str = "InsufficientResources") -> None:
    world.gang("Waiting", placed=False, reason=name, message=message)


def test_what_was_told_is_not_told_again_although_the_answer_lacks_it() -> None:
    world = pruned()
    queued(world, "0 of 1 fit")
    assert writes(world, 60) == 1
    assert "reason" not in world.status
    assert writes(world, 3600) == 0


def test_what_is_new_is_told_as_rarely_as_without_pruning() -> None:
    world = pruned()
    queued(world, "0 of 1 fit")
    world.settle(2 * INFORM_EVERY)
    before = world.api.statuses
    for at in range(30):
        queued(world, f"0 of 1 fit: {at}")
        world.settle(4)
    assert 3 <= world.api.statuses - before <= 120 / INFORM_EVERY + 1


def test_another_who_writes_the_status_is_not_answered_at_once_each_time() -> None:
    world = pruned()
    queued(world, "0 of 1 fit")
    world.settle(2 * INFORM_EVERY)
    before = world.api.statuses
    for at in range(60):
        status = {**world.status, "conditions": [{"type": "Theirs", "message": str(at)}]}
        world.api.change("appwrappers", "aw", status=status)
        world.settle(2)
    assert world.api.statuses - before <= 120 / INFORM_EVERY + 1


def test_a_whole_life_comes_to_rest_in_each_phase() -> None:
    world = pruned()
    world.place()
    world.settle(5)
    assert world.phase == "Running"
    world.gang("Resumed", placed=True)
    world.pods_become("Running")
    world.settle(120)
    assert writes(world, 3600) == 0
    world.pods_become("Succeeded")
    world.job_says("work", "Complete")
    world.settle(120)
    assert world.phase == "Succeeded"
    assert writes(world, 3600) == 0
    assert len(world.api.phases) == len({*world.api.phases})


def test_what_could_not_be_written_is_written_later() -> None:
    world = pruned()
    queued(world, "0 of 1 fit")
    world.settle(2 * INFORM_EVERY)
    world.api.unwritable = True
    queued(world, "1 of 2 fit")
    world.settle(5)
    world.api.unwritable = False
    assert writes(world, 60) == 1
    assert writes(world, 60) == 0


def test_a_new_leader_tells_it_once_more() -> None:
    world = pruned()
    queued(world, "0 of 1 fit")
    world.settle(60)
    world.lead()
    assert writes(world, 3600) <= 1

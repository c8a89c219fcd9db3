"""What is written into which Gang: news, moves and old estimates; and what a start teaches."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from forecast.asking import ends_of_range, report_of
from forecast.lengths import EXPECTED
from forecaster.telling import (
    MOST_WRITES,
    Started,
    Telling,
    Write,
    gangs_by_key,
    may_wait,
    nothing_waits,
)
from kube.codec.fields import moment_of
from kube.objects import names
from kube.objects.gang import Gang
from scheduling.model.gang import GangKey
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, group, node, ray_cluster, template
from tests.coordinator.replica import WALL
from tests.coordinator.world import World
from tests.forecast.pictures import HOUR, lasting, pictured, world_of


def telling(world: World, **more: Any) -> Telling:
    picture = pictured(world, **more)
    begun = picture.begun()
    course = begun.with_lengths(EXPECTED, begun.budget).go_on()
    report = report_of(picture, course, ends_of_range(picture, begun, course), 0.0)
    gangs = [msgspec.convert(each, Gang) for each in world.api.all("gangs")]
    return Telling(gangs_by_key(gangs), report, course)


def told(world: World) -> dict[str, Write]:
    found = {each.key.name: each for each in telling(world).writes()}
    for each in found.values():
        world.api.patch(Key("gangs", each.key.namespace, each.key.name), each.operations, "status")
    return found


@pytest.fixture
def world() -> World:
    """One gang runs, two wait for one another."""
    gangs = [lasting("runs", 3, 2), lasting("b", 3, 1), lasting("c", 3, 1)]
    return world_of(node("a", cpu=4), gangs=gangs)


def test_each_waiting_gang_is_told_when_it_starts_and_why(world: World) -> None:
    found = told(world)
    assert {*found} == {"b", "c"}
    said = found["b"].estimate
    assert said is not None
    assert said.basis == "Forward"
    assert said.reason.startswith("after RayCluster team/runs ends (declared 2h")
    assert said.earliest < said.time < said.latest
    assert said.first is not None
    assert (said.first.time, said.first.as_of) == (said.time, said.as_of)


def test_what_did_not_move_is_written_again_only_when_it_is_old(world: World) -> None:
    told(world)
    world.settle(seconds=50)
    assert not told(world)
    world.settle(seconds=20)
    assert {*told(world)} == {"b", "c"}


def test_the_coordinator_leaves_an_estimate_as_it_is_and_writes_its_own(world: World) -> None:
    told(world)
    before = world.api.get(Key("gangs", TEAM, "c"))["status"]
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    after = world.api.get(Key("gangs", TEAM, "c"))["status"]
    assert after["expectedStart"] == before["expectedStart"]
    assert (before["position"], after["position"]) == (2, 1)


def test_a_new_leader_leaves_estimates_as_they_are(world: World) -> None:
    told(world)
    before = world.api.get(Key("gangs", TEAM, "c"))["status"]
    world.elect(0)
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    after = world.api.get(Key("gangs", TEAM, "c"))["status"]
    assert after["epoch"] > before["epoch"]
    assert after["expectedStart"] == before["expectedStart"]


def test_an_estimate_that_moves_is_written_at_once_and_keeps_what_was_told_first(
    world: World,
) -> None:
    first = told(world)["c"].estimate
    world.delete("rayclusters", "b")
    world.settle(seconds=5)
    moved = told(world)["c"].estimate
    assert first is not None
    assert moved is not None
    assert moved.time < first.time
    assert moved.first == first.first
    assert not moved.moved


def test_a_range_that_is_not_worked_out_anew_is_as_wide_as_it_was(world: World) -> None:
    first = told(world)["c"].estimate
    world.delete("rayclusters", "b")
    world.settle(seconds=5)
    picture = pictured(world)
    course = picture.course()
    without = replace(telling(world), report=report_of(picture, course, (), 0.0), course=course)
    (moved,) = (each.estimate for each in without.writes() if each.key.name == "c")
    assert first is not None
    assert moved is not None
    assert moved.time < first.time
    width = moment_of(first.latest) - moment_of(first.time)
    assert moment_of(moved.latest) - moment_of(moved.time) == width


def test_a_gang_that_overran_is_named(world: World) -> None:
    told(world)
    world.settle(seconds=4 * HOUR)
    found = told(world)["b"].estimate
    assert found is not None
    assert found.moved.endswith(": RayCluster team/runs outlived the 2h it had")
    assert " later than told at " in found.moved


def test_a_gang_that_came_before_it_is_named(world: World) -> None:
    told(world)
    world.settle(seconds=120)
    workers = group("workers", 3, priority=10)
    said = {names.EXPECTED_DURATION: "9h"}
    world.create(ray_cluster("urgent", workers, head=template(priority=10), annotations=said))
    world.settle(seconds=60)
    found = told(world)["c"].estimate
    assert found is not None
    assert "RayCluster team/urgent came since, and is before it" in found.moved


def test_the_estimate_is_taken_away_when_the_gang_has_its_place(world: World) -> None:
    told(world)
    world.settle(seconds=120)
    world.delete("rayclusters", "runs")
    world.settle(seconds=10)
    found = telling(world)
    (away,) = (each for each in found.writes() if each.key.name == "b")
    assert away.estimate is None
    (start,) = found.started()
    assert start.told == "earlier"
    assert start.error == pytest.approx((2 * HOUR - 240) / 120, rel=0.05)


def test_a_start_is_counted_where_the_gang_was_read_before_it_and_its_pods_after(
    world: World,
) -> None:
    told(world)
    before = telling(world).gangs
    world.delete("rayclusters", "runs")
    world.settle(seconds=10)
    after = telling(world)
    torn = replace(after, gangs={**after.gangs, GangKey(TEAM, "b"): before[GangKey(TEAM, "b")]})
    assert "b" not in [each.key.name for each in torn.writes()]
    assert not list(torn.started())
    assert "b" in [each.key.name for each in after.writes()]
    assert list(after.started())


def test_a_gang_that_was_told_no_time_teaches_no_error() -> None:
    gangs = [lasting("runs", 3, 0), lasting("b", 3, 1)]
    world = world_of(node("a", cpu=4), gangs=gangs)
    said = told(world)["b"].estimate
    assert said is not None
    assert (said.basis, said.time, said.first) == ("Unknown", "", None)
    assert names.EXPECTED_DURATION in said.reason
    world.delete("rayclusters", "runs")
    world.settle(seconds=120)
    assert list(telling(world).started()) == [Started("untold", None)]


def test_what_does_not_wait_for_room_is_told_nothing(world: World) -> None:
    world.create(lasting("bad", 3, 1, annotations={names.EXPECTED_DURATION: "7 parsecs"}))
    world.settle(seconds=60)
    assert "bad" not in told(world)


def test_of_many_gangs_a_part_is_written_in_each_round_those_that_were_told_nothing_first(
    world: World,
) -> None:
    found = telling(world)
    many = {GangKey(TEAM, f"g-{at}"): each for at in range(300) for each in found.gangs.values()}
    waiting = [replace(found.course.waiting[0], key=key) for key in many]
    reports = [msgspec.structs.replace(found.report.gangs[0], name=key.name) for key in many]
    renamed = {
        key: msgspec.structs.replace(
            found.gangs[GangKey(TEAM, "b")],
            metadata=msgspec.structs.replace(each.metadata, name=key.name),
        )
        for key, each in many.items()
    }
    course = replace(found.course, waiting=tuple(waiting))
    report = msgspec.structs.replace(found.report, gangs=tuple(reports))
    assert len(replace(found, gangs=renamed, course=course, report=report).writes()) == MOST_WRITES


def test_where_no_gang_waits_the_gangs_alone_say_what_is_to_be_done(world: World) -> None:
    told(world)
    for name in ("runs", "c"):
        world.delete("rayclusters", name)
    world.settle(seconds=120)
    gangs = [msgspec.convert(each, Gang) for each in world.api.all("gangs")]
    assert not any(map(may_wait, gangs))
    found = nothing_waits(gangs, WALL + world.api.now)
    assert [(each.key.name, each.estimate) for each in found.writes()] == [("b", None)]
    assert [each.told for each in found.started()] == ["earlier"]

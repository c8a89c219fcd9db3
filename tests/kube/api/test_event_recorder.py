"""There is one Event for each reason on each object, changed in its place."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
import pytest

from kube.api import event_recorder
from kube.api.client import Client
from kube.api.errors import Conflict, Forbidden, NotFound, Timeout
from kube.api.event_recorder import EventRecorder, ObjectEvent

Json = dict[str, Any]

FITS = ObjectEvent(
    "team", "ray.io/v1", "RayCluster", "a", "uid-a", "InsufficientResources", "2 of 4 fit", True
)
HEAD = replace(FITS, api_version="v1", kind="Pod", name="a-head", uid="uid-head")


class Events:
    """The Events of a cluster, by path, and the requests for them."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.requests: list[str] = []

    async def create(self, path: str, body: Json) -> bytes:
        self.requests.append("POST")
        path = f"{path}/{body['metadata']['name']}"
        if path in self.objects:
            raise Conflict(409, "AlreadyExists")
        self.objects[path] = body
        return b""

    async def merge_patch(self, path: str, changes: Json, *, as_: type[Any]) -> Any:
        self.requests.append("PATCH")
        if path not in self.objects:
            raise NotFound(404, "NotFound")
        self.objects[path] = {**self.objects[path], **changes}
        return msgspec.convert(self.objects[path], as_)


class Clock:
    """A minute passes between two looks."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def leader(events: Events, clock: Clock) -> EventRecorder:
    return EventRecorder(cast(Client, events), "reporter", "test", clock)


async def test_an_event_is_what_kubectl_describe_reads(events: Events, clock: Clock) -> None:
    await leader(events, clock).write(FITS)
    [(path, event)] = events.objects.items()
    assert path.startswith("/api/v1/namespaces/team/events/a.")
    assert event["involvedObject"] == {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "namespace": "team",
        "name": "a",
        "uid": "uid-a",
    }
    assert (event["type"], event["reason"]) == ("Warning", "InsufficientResources")
    assert (event["message"], event["count"]) == ("2 of 4 fit", 1)
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:01:00Z"


async def test_an_event_without_an_answer_is_written_once_more(
    events: Events, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the first one came through is not known; its name is the same."""
    create = events.create

    async def late(path: str, body: Json) -> bytes:
        await create(path, body)
        monkeypatch.setattr(events, "create", create)
        raise Timeout("no answer in time")

    monkeypatch.setattr(events, "create", late)
    await leader(events, clock).write(FITS)
    [event] = events.objects.values()
    assert (event["message"], events.requests) == ("2 of 4 fit", ["POST", "POST", "PATCH"])

    async def never(path: str, body: Json) -> bytes:
        raise Timeout("no answer in time")

    monkeypatch.setattr(events, "create", never)
    with pytest.raises(Timeout):
        await leader(events, clock).write(HEAD)


async def test_another_message_changes_the_event_and_counts(events: Events, clock: Clock) -> None:
    writer = leader(events, clock)
    await writer.write(FITS)
    await writer.write(replace(FITS, message="3 of 4 fit"))
    await writer.write(replace(FITS, message="4 of 4 fit"))
    [event] = events.objects.values()
    assert (event["message"], event["count"]) == ("4 of 4 fit", 3)
    assert event["firstTimestamp"] == "2026-01-01T00:01:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:03:00Z"
    assert events.requests == ["POST", "PATCH", "PATCH"]


async def test_another_reason_or_object_has_its_own(events: Events, clock: Clock) -> None:
    writer = leader(events, clock)
    for event in (FITS, replace(FITS, reason="Unsupported"), HEAD):
        await writer.write(event)
    assert events.requests == ["POST"] * 3
    kinds = [event["involvedObject"]["kind"] for event in events.objects.values()]
    assert kinds == ["RayCluster", "RayCluster", "Pod"]
    await writer.write(replace(FITS, uid="uid-of-another-of-the-name"))
    assert len(events.objects) == 4


async def test_two_programs_that_give_one_reason_have_an_event_each(
    events: Events, clock: Clock
) -> None:
    for reporter in ("coordinator", "wrapper"):
        await EventRecorder(cast(Client, events), reporter, "test", clock).write(FITS)
    assert len(events.objects) == 2


async def test_another_leader_goes_on_with_it(events: Events, clock: Clock) -> None:
    first = leader(events, clock)
    for _ in range(3):
        await first.write(FITS)
    second = leader(events, clock)
    await second.write(replace(FITS, message="from the second"))
    await second.write(replace(FITS, message="once more"))
    [event] = events.objects.values()
    assert (event["message"], event["count"]) == ("once more", 4)


async def test_one_that_is_gone_is_made_anew(events: Events, clock: Clock) -> None:
    writer = leader(events, clock)
    await writer.write(FITS)
    events.objects.clear()
    await writer.write(FITS)
    [event] = events.objects.values()
    assert event["count"] == 1


async def test_the_memory_has_a_bound(
    events: Events, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is forgotten costs one more request, and is still one object."""
    monkeypatch.setattr(event_recorder, "REMEMBERED", 2)
    writer = leader(events, clock)
    for number in range(5):
        await writer.write(replace(FITS, reason=f"Reason{number}"))
    assert len(writer._counts) == 2
    await writer.write(replace(FITS, reason="Reason0"))
    assert len(events.objects) == 5
    assert events.requests[-2:] == ["POST", "PATCH"]


class Closing(Events):
    """Nothing is created any more."""

    async def create(self, path: str, body: Json) -> bytes:
        raise Forbidden(403, "Forbidden", f"{path}/{body['kind']}")


async def test_a_refusal_comes_out(clock: Clock) -> None:
    with pytest.raises(Forbidden):
        await leader(Closing(), clock).write(FITS)


async def test_long_names_make_names_that_an_object_may_have(events: Events, clock: Clock) -> None:
    writer = leader(events, clock)
    await writer.write(replace(HEAD, name="x" * 199 + "-y" + "z" * 50))
    [path] = events.objects
    assert len(path.rpartition("/")[2]) <= 253

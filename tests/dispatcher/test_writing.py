"""What is written on members: terms on their Leases, and that an attempt is over there."""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import msgspec
import pytest

from dispatcher.messages import (
    RECORD,
    Act,
    CloseRecord,
    Done,
    Ended,
    GiveLeave,
    LeaseTaken,
    TakeLease,
    WriteRecord,
)
from dispatcher.metrics import Metrics
from dispatcher.reading import Answer, OfferObject, Turn, answer_of
from dispatcher.shell.writing import ManagerWriter, MemberWriter
from kube.api.client import Client
from kube.api.errors import KubeError, NotFound
from kube.codec.fields import moment_of
from kube.objects.clusters.dispatch import ASKED, CLOSED, OFFERED, GangDispatch
from kube.objects.clusters.gang_offer import OfferMeta
from kube.objects.names import STAMP, STAMP_READ
from tests.dispatcher.objects import TEAM, meta

Json = dict[str, Any]

OFFERS = f"/apis/muster.dev/v1alpha1/namespaces/{TEAM}/gangoffers/offer"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases"
LEASE = f"{LEASES}/muster-dispatcher-m"
NOON = moment_of("2026-01-01T12:00:00Z")
"""By the clock of a member."""


class FakeClient:
    """An API server that has some objects, and notes what is written."""

    def __init__(self, objects: Json | None = None, error: KubeError | None = None) -> None:
        self.objects = objects or {}
        self.error = error or NotFound(404, "NotFound", "it is not there")
        self.written: list[tuple[str, Any]] = []

    async def get(self, path: str, *, as_: type[Any]) -> Any:
        if path not in self.objects:
            raise self.error
        return msgspec.convert(self.objects[path], type=as_)

    async def create(self, path: str, body: Json, **_: Any) -> Any:
        self.written.append((path, body))

    merge_patch = create

    async def server_time(self) -> float:
        return NOON

    async def json_patch(self, path: str, operations: list[Json], *, as_: type[Any]) -> Any:
        self.written.append((path, operations))
        return msgspec.convert({"metadata": {"name": "train"}}, type=as_)


class Leads:
    def __init__(self, *, valid: bool = True) -> None:
        self.is_valid = valid

    def valid(self) -> bool:
        return self.is_valid


def writer(member: FakeClient, manager: FakeClient | None = None, **term: bool) -> MemberWriter:
    clients = (cast(Client, manager or FakeClient()), cast(Client, member))
    feed: list[Any] = []
    return MemberWriter("east", clients, Leads(**term), feed.extend, 1, Metrics(), "muster-system")


# ---- its term on the Lease


async def take(found: Json | None, term: int) -> tuple[FakeClient, LeaseTaken]:
    member = FakeClient({LEASE: found} if found is not None else {})
    (event,) = await writer(member)._carry_out(TakeLease("east", 7, "m", term))
    assert isinstance(event, LeaseTaken)
    assert event.ticket == 7
    return member, event


async def test_the_first_leader_creates_the_lease() -> None:
    member, event = await take(None, 3)
    ((path, body),) = member.written
    assert (path, body["spec"]) == (LEASES, {"leaseTransitions": 3})
    assert not event.error


async def test_a_later_one_writes_on_the_version_that_it_read() -> None:
    lease = {"metadata": {"resourceVersion": "9"}, "spec": {"leaseTransitions": 2}}
    member, event = await take(lease, 3)
    ((path, body),) = member.written
    assert path == LEASE
    assert body == {"metadata": {"resourceVersion": "9"}, "spec": {"leaseTransitions": 3}}
    assert not event.error


@pytest.mark.parametrize(
    ("notes", "renewed"),
    [
        ({STAMP: "17.5"}, True),
        ({STAMP: "17.5", STAMP_READ: "16.5"}, True),
        ({STAMP: "17.5", STAMP_READ: "17.5"}, False),
        ({}, False),
    ],
)
async def test_a_new_stamp_of_the_member_is_written_back(notes: Json, renewed: bool) -> None:
    meta = {"resourceVersion": "9", "annotations": notes}
    member, event = await take({"metadata": meta, "spec": {"leaseTransitions": 3}}, 3)
    assert event.renewed is renewed
    written = [body["metadata"] for _, body in member.written]
    copied = {"resourceVersion": "9", "annotations": {STAMP_READ: "17.5"}}
    assert written == ([copied] if renewed else [])


async def test_the_lease_of_a_newer_leader_is_left_alone() -> None:
    lease = {"metadata": {"resourceVersion": "9"}, "spec": {"leaseTransitions": 4}}
    member, event = await take(lease, 3)
    assert not member.written
    assert "leader of term 4" in event.error


# ---- that an attempt is over

TURN = Turn(meta("train", resource_version="5"), "uid-train", "all", 0, True, False, None)
CLOSE = CloseRecord("east", TURN, GangDispatch(1, "east", 3, CLOSED), TEAM, "offer")


def offer(phase: str) -> Json:
    return {OFFERS: {"metadata": {"name": "offer"}, "status": {"phase": phase}}}


async def close(member: FakeClient, **term: bool) -> tuple[FakeClient, Ended]:
    manager = FakeClient()
    acting = writer(member, manager, **term)
    (event,) = await acting._carry_out(Act("uid-train", "record of the gang", 7, CLOSE))
    assert isinstance(event, Ended)
    return manager, event


@pytest.mark.parametrize("member", [FakeClient(offer("Closed")), FakeClient()])
async def test_what_is_closed_or_gone_as_it_is_now_is_written(member: FakeClient) -> None:
    manager, event = await close(member)
    ((_, operations),) = manager.written
    assert operations[1] == {"op": "test", "path": "/metadata/resourceVersion", "value": "5"}
    assert operations[2]["value"] == {
        "attempt": 1,
        "cluster": "east",
        "term": 3,
        "phase": "Closed",
    }
    assert isinstance(event.result, Done)


@pytest.mark.parametrize("phase", ["Asked", "Offered", "Started"])
async def test_what_is_open_by_now_is_not_closed(phase: str) -> None:
    manager, event = await close(FakeClient(offer(phase)))
    assert not manager.written
    assert isinstance(event.result, Done)
    ((where, answer),) = event.result.things
    assert isinstance(answer, Answer)
    assert (where, answer.phase) == ("east", phase)


async def test_a_server_that_knows_no_gangoffers_says_nothing_of_one() -> None:
    manager, event = await close(FakeClient(error=NotFound(404, "", "page not found")))
    assert not manager.written
    assert not isinstance(event.result, Done)


async def test_who_leads_no_more_closes_nothing() -> None:
    manager, event = await close(FakeClient(offer("Closed")), valid=False)
    assert not manager.written
    assert not isinstance(event.result, Done)


# ---- the order of writes


async def test_a_decision_passes_what_but_tells() -> None:
    manager, told = FakeClient(), asyncio.Event()
    heard: list[Any] = []

    def feed(events: Any) -> None:
        heard.extend(event.uid for event in events)
        if len(heard) == 2:
            told.set()

    client = cast(Client, manager)
    acting = ManagerWriter(client, Leads(), feed, 1, Metrics(), "dispatcher-0")
    says = WriteRecord(TURN, GangDispatch(1, "", 3, ASKED, message="no room"), informs=True)
    chooses = WriteRecord(TURN, GangDispatch(1, "east", 3, OFFERED))
    acting.submit([Act("a", RECORD, 1, says), Act("b", RECORD, 2, chooses)])
    async with asyncio.timeout(5):
        await told.wait()
    await acting.close()
    assert heard == ["b", "a"]


# ---- leave to stop gangs


async def test_leave_ends_by_the_clock_of_the_member_and_only_for_the_offer_that_was_read() -> None:
    member = FakeClient()
    asked = answer_of(OfferObject(metadata=OfferMeta(name="offer", namespace=TEAM)))
    deed = GiveLeave("east", asked, 0.0, time.monotonic() + 300.5)
    await writer(member).write(deed)
    ((path, operations),) = member.written
    assert path == OFFERS
    assert [each["path"] for each in operations[:2]] == [
        "/metadata/uid",
        "/metadata/resourceVersion",
    ]
    assert operations[2] == {
        "op": "add",
        "path": "/spec/mayStopGangsUntil",
        "value": "2026-01-01T12:05:00Z",
    }

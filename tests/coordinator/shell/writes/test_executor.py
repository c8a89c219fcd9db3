"""The executor sends writes in turn, and says when all are over."""

import asyncio
from typing import Any, cast, get_args

import msgspec
import pytest

from coordinator.messages.actions import (
    Action,
    CreateGang,
    DeleteGang,
    DeletePod,
    LogDecision,
    NominatePod,
    ReleasePod,
    WriteGangStatus,
    WriteQueueFinalizers,
    WriteQueueStatus,
)
from coordinator.messages.events import Event
from coordinator.messages.write_ends import PodPatchEnded
from coordinator.shell.writes.executor import Executor
from kube.api.client import Client
from kube.api.errors import (
    Timeout,
)
from kube.codec.pod_patches import Operation
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.core import Pod, PodSpec, SchedulingGate
from tests.coordinator.shell.writes.terms import EVENT, GANG, POD, Recording, Slow, Term, turns


def test_there_is_a_handler_for_every_action() -> None:
    executor = Executor(cast(Client, None), Term(), lambda _: None, identity="test", concurrency=1)
    assert executor._handlers.keys() == {*get_args(Action)} - {LogDecision}


async def test_a_write_that_is_still_queued_is_not_sent_when_the_term_has_ended() -> None:
    """A process that was stopped for a minute wakes up with a full queue and no term."""
    term, client, heard = Term(), Slow(), list[Event]()
    executor = Executor(cast(Client, client), term, heard.extend, identity="test", concurrency=1)
    executor.submit(DeletePod(GANG, "team", name, name, "1") for name in ("one", "two"))
    await turns()
    term.ours = False
    client.answer.set()
    await turns()
    assert client.sent == ["one"]
    assert heard == [PodPatchEnded(GANG, "one", None)]


class Jobs:
    """A client that answers a patch with the next version of the pod, and notes what was sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, object]] = []

    async def merge_patch(self, _path: str, changes: object, **_: Any) -> Pod:
        self.sent.append(("patch", changes))
        return msgspec.structs.replace(POD, metadata=ObjectMeta(resource_version="2"))

    async def delete(self, _path: str, *, uid: str, resource_version: str) -> bytes:
        self.sent.append(("delete", (uid, resource_version)))
        return b""


async def test_a_pod_is_taken_from_its_job_before_it_is_deleted() -> None:
    """A Job counts a pod that is deleted as failed; one that it gave up is none of its pods."""
    client, heard = Jobs(), list[Event]()
    executor = Executor(cast(Client, client), Term(), heard.extend, identity="test", concurrency=1)
    executor.submit([DeletePod(GANG, "team", "one", "one", "1", of_job=True)])
    await turns()
    selector = {"batch.kubernetes.io/controller-uid": None, "controller-uid": None}
    taken = {"metadata": {"uid": "one", "resourceVersion": "1", "labels": selector}}
    assert client.sent == [("patch", taken), ("delete", ("one", "2"))]
    assert heard == [PodPatchEnded(GANG, "one", None)]


def sending_one(client: object) -> Executor:
    """An executor with one delete under way."""
    executor = Executor(
        cast(Client, client), Term(), lambda _: None, identity="test", concurrency=2
    )
    executor.submit([DeletePod(GANG, "team", "one", "one", "1")])
    return executor


async def test_a_term_whose_requests_are_all_answered_says_so() -> None:
    client = Slow()
    executor = sending_one(client)
    await turns()
    client.answer.set()
    assert await executor.close(60)


async def test_a_term_with_a_request_under_way_does_not_say_that_all_are_over() -> None:
    executor = sending_one(Slow())
    await turns()
    assert not await executor.close(0.01)


class Lost:
    """A client whose every request is lost after it was sent."""

    async def json_patch(self, *_: str, **__: Any) -> Pod:
        raise Timeout("no answer")

    create = delete = json_patch

    async def get(self, *_: str, **__: Any) -> Pod:
        raise Timeout("no answer")


UNANSWERED: list[Action] = [
    DeletePod(GANG, "team", "one", "one", "1"),
    DeleteGang(GANG, "uid"),
    WriteGangStatus(GANG, "uid", "1", {}, decides=False),
    CreateGang(GANG, {}),
    WriteQueueStatus("team", "uid", "1", {}),
    WriteQueueFinalizers("team", "uid", "1", ()),
]


@pytest.mark.parametrize("action", UNANSWERED, ids=lambda each: type(each).__name__)
async def test_a_term_with_any_write_of_unknown_outcome_does_not_say_that_all_are_over(
    action: Action,
) -> None:
    executor = Executor(
        cast(Client, Lost()), Term(), lambda _: None, identity="test", concurrency=1
    )
    executor.submit([action])
    await turns()
    assert not await executor.close(60)


async def test_what_only_informs_takes_at_most_every_other_turn() -> None:
    """Thousands of Events may be overdue at one time, and releases wait behind them."""
    client = Recording()
    executor = Executor(
        cast(Client, client), Term(), lambda _: None, identity="test", concurrency=1
    )
    executor._writes._informing.extend((0.0, EVENT) for _ in range(10))
    executor.submit(DeletePod(GANG, "team", f"p{n}", f"p{n}", "1") for n in range(3))
    for _ in range(10):
        await turns()
    deletions = [at for at, sent in enumerate(client.sent) if sent.startswith("p")]
    assert max(deletions) <= 6


async def test_what_is_written_to_queues_lets_the_rest_pass() -> None:
    client = Recording()
    executor = Executor(
        cast(Client, client), Term(), lambda _: None, identity="test", concurrency=1
    )
    told: list[Action] = [
        WriteQueueStatus("team", "uid", "1", {}),
        WriteQueueFinalizers("team", "uid", "1", ()),
    ]
    executor.submit([DeletePod(GANG, "team", "first", "first", "1"), *told])
    executor.submit([DeletePod(GANG, "team", "second", "second", "1")])
    for _ in range(10):
        await turns()
    assert client.sent == ["first", "second", "team/status", "team"]


async def test_nominations_let_the_rest_pass_and_their_end_does_not() -> None:
    """Where one is wrong, other pods are kept from that room."""
    client = RecordingNominations()
    executor = Executor(
        cast(Client, client), Term(), lambda _: None, identity="test", concurrency=1
    )
    executor.submit([DeletePod(GANG, "team", "first", "first", "1")])
    executor.submit([NominatePod(GANG, POD, "n1", "x"), NominatePod(GANG, POD, "", "x")])
    executor.submit([DeletePod(GANG, "team", "second", "second", "1")])
    for _ in range(10):
        await turns()
    assert client.sent == ["first", "one/status=", "second", "one/status=n1"]


async def test_a_term_with_a_patch_of_unknown_outcome_does_not_say_that_all_are_over() -> None:
    """It may lie in a proxy, and arrive in the next term."""
    executor = Executor(
        cast(Client, Lost()), Term(), lambda _: None, identity="test", concurrency=1
    )
    gated = PodSpec(scheduling_gates=(SchedulingGate(names.GATE),))
    executor.submit([ReleasePod(GANG, Pod(ObjectMeta("w", "team"), gated), "n1")])
    await turns()
    assert not await executor.close(60)


class Broken:
    """A client with a bug."""

    async def delete(self, *_: str, **__: Any) -> bytes:
        raise ZeroDivisionError


async def test_a_bug_in_an_action_comes_out_of_the_executor() -> None:
    """Else the pod would count as under way for the rest of the term, and none would tell."""
    executor = Executor(
        cast(Client, Broken()), Term(), lambda _: None, identity="test", concurrency=1
    )
    executor.submit([DeletePod(GANG, "team", "one", "one", "1")])
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(60):
            await executor.run()


class RecordingNominations(Recording):
    """Notes of a nomination the pod and its node."""

    async def json_patch(self, path: str, operations: list[Operation], **_: Any) -> Any:
        field = next(each for each in operations if each["path"] == "/status/nominatedNodeName")
        self.sent.append(f"{path.partition('/pods/')[2]}={field['value']}")
        return POD

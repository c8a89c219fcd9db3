"""The executor checks its term before each request, and not only when it takes the action."""

import asyncio
from typing import Any, cast, get_args

import msgspec
import pytest
from prometheus_client import REGISTRY
from structlog.testing import LogCapture

from coordinator.messages.actions import (
    Action,
    CreateGang,
    DeleteGang,
    DeletePod,
    EmitEvent,
    LogDecision,
    NominatePod,
    Regarding,
    ReleasePod,
    WriteGangStatus,
    WriteQueueFinalizers,
    WriteQueueStatus,
)
from coordinator.messages.events import Event, GangGone, GangSeen
from coordinator.messages.write_ends import NominationEnded, PodPatchEnded, WriteEnded
from coordinator.shell.writes.executor import Executor
from kube.api.client import Client
from kube.api.errors import (
    NAMESPACE_TERMINATING,
    Forbidden,
    KubeError,
    NotFound,
    ServerError,
    Timeout,
)
from kube.codec.pod_patches import Operation
from kube.objects import core as core_objects
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.core import Pod, PodSpec, SchedulingGate
from kube.objects.gang import Gang, GangMeta
from scheduling.model.gang import GangKey
from tests.metrics import total

GANG = GangKey("team", "a")
POD = msgspec.convert(
    {
        "metadata": {"name": "one", "namespace": "team", "uid": "one", "resourceVersion": "1"},
        "spec": {"schedulingGates": [{"name": names.GATE}], "containers": []},
    },
    core_objects.Pod,
)
EVENT = EmitEvent(GANG, "uid", True, "Misconfigured", "bad")
HEAD = Regarding("v1", "Pod", "a-head", "uid-head")


class Term:
    """Ours until it is ended."""

    def __init__(self) -> None:
        self.ours = True

    def valid(self) -> bool:
        return self.ours


class Slow:
    """A client whose deletes are answered when the test says so."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.answer = asyncio.Event()

    async def delete(self, path: str, **_: Any) -> bytes:
        self.sent.append(path.rpartition("/")[2])
        await self.answer.wait()
        return b""


async def turns() -> None:
    """Let everything that can go on go on."""
    for _ in range(20):
        await asyncio.sleep(0)


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


# ---- what is deleted


class Holding:
    """A client whose deletes succeed, and whose reads find what they are given."""

    def __init__(self, found: Gang | KubeError) -> None:
        self.found = found

    async def delete(self, *_: str, **__: Any) -> bytes:
        return b""

    async def get(self, *_: str, **__: Any) -> Gang:
        if isinstance(self.found, KubeError):
            raise self.found
        return self.found


HELD, ANOTHER = (Gang(GangMeta("a", "team", uid)) for uid in ("old", "new"))
GONE = GangGone(GANG, "old")


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (NotFound(404, "NotFound", "no such gang"), [GONE]),
        (HELD, [GangSeen(HELD)]),
        (ANOTHER, [GONE, GangSeen(ANOTHER)]),
        (Timeout("no answer"), []),
    ],
    ids=["gone", "held", "made again", "unknown"],
)
async def test_a_deleted_gang_is_gone_when_a_read_says_so(
    found: Gang | KubeError, told: list[Event]
) -> None:
    heard = list[Event]()
    client = cast(Client, Holding(found))
    executor = Executor(client, Term(), heard.extend, identity="test", concurrency=1)
    executor.submit([DeleteGang(GANG, "old")])
    await turns()
    unread = None if told else "deleted, and not read since"  # tried again after a while
    assert heard == [*told, WriteEnded(GANG, unread)]


# ---- what is told


def test_a_decision_is_in_the_log_at_once_and_no_request(lines: LogCapture) -> None:
    client = Slow()
    executor = Executor(
        cast(Client, client), Term(), lambda _: None, identity="test", concurrency=1
    )
    executor.submit([LogDecision(GANG, "gang admitted", "default", 4, ("n1", "n2"), 1.25)])
    assert lines.entries == [
        {
            "event": "gang admitted",
            "log_level": "info",
            "gang": "team/a",
            "queue": "default",
            "pods": 4,
            "nodes": ("n1", "n2"),
            "seconds": 1.25,
        }
    ]
    assert client.sent == []


def test_of_a_large_gang_the_log_names_some_nodes_and_counts_the_rest(lines: LogCapture) -> None:
    executor = Executor(
        cast(Client, Slow()), Term(), lambda _: None, identity="test", concurrency=1
    )
    nodes = tuple(f"n{number:03}" for number in range(500))
    executor.submit([LogDecision(GANG, "gang admitted", "default", 500, nodes)])
    [line] = lines.entries
    assert (line["nodes"], line["more_nodes"]) == (nodes[:10], 490)


class Recording:
    """A client that notes what is written, in order."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def create(self, _: str, body: dict[str, Any]) -> bytes:
        self.sent.append(f"{body['involvedObject']['kind']}: {body['message']}")
        return b""

    async def delete(self, path: str, **_: Any) -> bytes:
        self.sent.append(path.rpartition("/")[2])
        return b""

    async def json_patch(self, path: str, *_: Any, **__: Any) -> Any:
        self.sent.append(path.partition("/gangqueues/")[2])
        return b""


class RecordingNominations(Recording):
    """Notes of a nomination the pod and its node."""

    async def json_patch(self, path: str, operations: list[Operation], **_: Any) -> Any:
        field = next(each for each in operations if each["path"] == "/status/nominatedNodeName")
        self.sent.append(f"{path.partition('/pods/')[2]}={field['value']}")
        return POD


NO_RIGHT = Forbidden(
    403, "Forbidden", 'User "muster" cannot patch resource "pods/status" in API group ""'
)


async def test_a_right_that_is_missing_is_told_once_with_what_helps(lines: LogCapture) -> None:
    """The state machine hears it of each nomination; what one webhook refuses is no such thing."""
    client, heard = Refusing(NO_RIGHT), list[Event]()
    executor = Executor(cast(Client, client), Term(), heard.extend, identity="test", concurrency=1)
    executor.submit([NominatePod(GANG, POD, "n1", "x"), NominatePod(GANG, POD, "n2", "x")])
    await turns()
    assert heard == [NominationEnded(GANG, "one", forbidden=True)] * 2
    [line] = lines.entries
    assert line["log_level"] == "warning"
    assert "pods/status" in line["remedy"]
    assert "MUSTER_COORDINATOR_GUARD" in line["remedy"]
    client.error = Forbidden(403, "Forbidden", 'admission webhook "x" denied the request')
    executor.submit([NominatePod(GANG, POD, "n1", "x")])
    await turns()
    await executor.close()
    assert heard[2:] == [NominationEnded(GANG, "one")]


async def test_events_on_other_objects_come_last_and_of_each_only_the_newest() -> None:
    """They say what the RayCluster says; what starts a gang must not wait for them."""
    client = Recording()
    executor = Executor(
        cast(Client, client), Term(), lambda _: None, identity="test", concurrency=1
    )
    echoes = [EmitEvent(GANG, "uid", True, "Bad", text, HEAD) for text in ("old", "new")]
    deletion = DeletePod(GANG, "team", "one", "one", "1")
    executor.submit([deletion, *echoes, EVENT, DeletePod(GANG, "team", "two", "two", "1")])
    await turns()
    await executor.close()
    assert client.sent == ["one", "two", "RayCluster: bad", "Pod: new"]


class Refusing:
    """A client to which every write is refused; there is nothing to be read."""

    def __init__(self, error: KubeError) -> None:
        self.error = error

    async def create(self, *_: Any, **__: Any) -> bytes:
        raise self.error

    async def json_patch(self, *_: Any, **__: Any) -> bytes:
        raise self.error

    async def get(self, *_: Any, **__: Any) -> bytes:
        raise NotFound(404, "NotFound")


def _counted(what: str, outcome: str) -> float:
    return total(REGISTRY, "muster_writes_total", what=what, outcome=outcome)


TERMINATING = Forbidden(403, "Forbidden", "it goes", causes=(NAMESPACE_TERMINATING,))
IN_A_NAMESPACE: list[tuple[Action, str]] = [
    (CreateGang(GANG, {}), "gang_create"),
    (ReleasePod(GANG, POD, "n1"), "pod_release"),
    (NominatePod(GANG, POD, "n1", "x"), "pod_nomination"),
    (EVENT, "event"),
]


@pytest.mark.parametrize(("action", "what"), IN_A_NAMESPACE, ids=lambda each: str(each)[:12])
@pytest.mark.parametrize("error", [TERMINATING, NotFound(404, "NotFound", "no such namespace")])
async def test_what_fails_because_its_namespace_goes_is_counted_and_not_logged(
    lines: LogCapture, action: Action, what: str, error: KubeError
) -> None:
    before = _counted(what, "gone")
    heard = await _carried_out(action, error)
    assert _counted(what, "gone") == before + 1
    assert lines.entries == []
    ends = WriteEnded | PodPatchEnded | NominationEnded
    assert any(isinstance(each, ends) for each in heard) is (what != "event")


@pytest.mark.parametrize(("action", "what"), IN_A_NAMESPACE, ids=lambda each: str(each)[:12])
@pytest.mark.parametrize("error", [Forbidden(403, "Forbidden", "no right"), NotFound(404)])
async def test_what_is_refused_for_another_reason_is_logged(
    lines: LogCapture, action: Action, what: str, error: KubeError
) -> None:
    """A right that is missing, or a kind that is not served."""
    before = _counted(what, "gone")
    await _carried_out(action, error)
    assert len(lines.entries) == 1
    assert _counted(what, "gone") == before


async def _carried_out(action: Action, error: KubeError) -> list[Event]:
    heard: list[Event] = []
    client = cast(Client, Refusing(error))
    executor = Executor(client, Term(), heard.extend, identity="test", concurrency=1)
    executor.submit([action])
    await turns()
    await executor.close()
    return heard


async def test_an_event_that_is_not_written_is_counted() -> None:
    before = total(REGISTRY, "muster_events_dropped_total")
    await _carried_out(EVENT, ServerError(500, "InternalError"))
    assert total(REGISTRY, "muster_events_dropped_total") == before + 1

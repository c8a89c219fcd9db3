"""What the executor logs, counts and tells of its writes."""

from typing import Any, cast

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
from kube.objects.gang import Gang, GangMeta
from tests.coordinator.shell.writes.terms import EVENT, GANG, POD, Recording, Slow, Term, turns
from tests.metrics import total

HEAD = Regarding("v1", "Pod", "a-head", "uid-head")


# ---- what is deleted


class Holding:
    """A client whose deletes succeed, and whose reads find what they are given."""

    def __init__(self, found: Gang | Exception, answer: bytes = b"") -> None:
        self.found, self.answer = found, answer

    async def delete(self, *_: str, **__: Any) -> bytes:
        return self.answer

    async def get(self, *_: str, **__: Any) -> Gang:
        if isinstance(self.found, Exception):
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


async def test_or_when_the_answer_to_the_delete_says_so() -> None:
    heard = list[Event]()
    answer = b'{"kind": "Status", "status": "Success", "details": {"uid": "old"}}'
    client = cast(Client, Holding(AssertionError("it was read"), answer))
    executor = Executor(client, Term(), heard.extend, identity="test", concurrency=1)
    executor.submit([DeleteGang(GANG, "old")])
    await turns()
    assert heard == [GONE, WriteEnded(GANG, None)]


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

"""What `muster defrag --apply` says where a plan comes to nothing; the coordinator is played."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec
import pytest

from cli.endings import Absent, Ending, NotAllowed, StandsInTheWay
from cli.forecast.move_request import MoveRequest
from cli.report.forecast.defrag import MovedReport
from cli.write import moving
from cli.write.writer import NotWritten, Writer
from kube.objects.gang import Gang
from scheduling.model.gang import GangKey

LARGE, TWO = GangKey("team", "large"), GangKey("team", "two")
PLACED = {"podSets": [{"name": "workers", "assignments": [{"shape": "s", "nodes": {"gpu-0": 1}}]}]}
MOVES = {"until": "2026-01-01T00:00:00Z", "placement": PLACED, "gangs": []}
RUNS = {"decided": 1, "placement": PLACED}
ENDS = {**RUNS, "evictions": [{"reason": "Preempted"}]}
AGAIN = {"decided": 2, "placement": PLACED}
WAITS = {"reason": "InsufficientResources", "moves": MOVES}
HOLDS = {"reason": "Preempting", "moves": MOVES}
STARTS = {"placement": PLACED, "moves": MOVES}

Statuses = tuple[dict[str, Any] | None, dict[str, Any] | None]
"""Those of the gang that waits and of the one that moves; None where there is none."""


def gang(key: GangKey, status: dict[str, Any] | None) -> Gang | None:
    if status is None:
        return None
    meta = {"name": key.name, "namespace": key.namespace, "uid": f"uid-{key.name}"}
    return msgspec.convert({"metadata": meta, "status": status}, Gang)


class Played:
    """An API server on which the Gangs go from one state to the next with each look."""

    def __init__(self, states: Sequence[Statuses], refuses: str = "") -> None:
        self._states: Iterator[Statuses] = iter(states)
        self._now: Statuses = states[0]
        self._refuses = refuses
        self.patches: list[str] = []
        self.reader = self

    async def list(self, *_: object, **__: object) -> tuple[object, ...]:
        raise NotAllowed("may not list budgets")

    async def get(self, _resource: object, _as: object, name: str, _namespace: str) -> Gang | None:
        if name == "large":
            self._now = next(self._states, self._now)
        return gang(LARGE, self._now[0]) if name == "large" else gang(TWO, self._now[1])

    async def json_patch(
        self, _path: str, operations: Sequence[dict[str, Any]]
    ) -> NotWritten | None:
        self.patches.append(operations[-1]["op"])
        return NotWritten(self._refuses) if self._refuses else None


def carried_out(
    played: Played, monkeypatch: pytest.MonkeyPatch, *, seconds: float = 60.0, refused: str = ""
) -> tuple[MovedReport, ...]:
    monkeypatch.setattr(moving, "PAUSE", 0.0)
    plan = {"placement": PLACED, "gangs": []}
    request = MoveRequest(LARGE, "uid-large", plan, {TWO: 1}, {TWO: ()}, refused)
    writer = cast("Writer", played)
    return asyncio.run(moving.carry_out(writer, request, lambda _: None, seconds))


def test_what_becomes_of_each_is_told_and_the_request_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = Played([(WAITS, RUNS), (HOLDS, RUNS), (HOLDS, ENDS), (STARTS, {}), (STARTS, AGAIN)])
    done = carried_out(played, monkeypatch)
    became = [(each.name, each.became) for each in done]
    assert became == [("two", "stopped"), ("large", "started"), ("two", "runs again")]
    assert [placed.node for placed in done[-1].nodes] == ["gpu-0"]
    assert played.patches == ["add", "remove"]


def test_a_gang_that_was_stopped_and_placed_between_two_looks_is_told_as_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = carried_out(Played([(WAITS, RUNS), (HOLDS, RUNS), (STARTS, AGAIN)]), monkeypatch)
    became = {(each.name, each.became) for each in done}
    assert became == {("two", "stopped"), ("large", "started"), ("two", "runs again")}


def ended(
    states: Sequence[Statuses],
    monkeypatch: pytest.MonkeyPatch,
    patches: Sequence[str],
    **more: Any,
) -> Ending:
    played = Played(states)
    with pytest.raises(Ending) as caught:
        carried_out(played, monkeypatch, **more)
    assert played.patches == list(patches)
    return caught.value


def test_what_the_coordinator_does_not_take_up_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "TAKEN_UP", 0.0)
    said = ended([(WAITS, RUNS)], monkeypatch, ["add", "remove"])
    assert isinstance(said, StandsInTheWay)
    assert "the coordinator moved nothing" in str(said)


def test_what_the_coordinator_gives_up_before_anything_ended_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = [(WAITS, RUNS), (HOLDS, RUNS), (WAITS, RUNS)]
    said = ended(states, monkeypatch, ["add", "remove"])
    assert "nothing was done" in str(said)


def test_a_gang_that_is_deleted_meanwhile_is_named_with_what_was_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = ended([(WAITS, RUNS), (HOLDS, ENDS), (None, {})], monkeypatch, ["add"])
    assert isinstance(said, Absent)
    assert str(said) == "Gang team/large is gone; done: team/two stopped"


def test_what_is_not_done_in_time_is_named_and_the_room_stays_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = ended([(WAITS, RUNS), (STARTS, {})], monkeypatch, ["add"], seconds=0.0)
    assert "team/large has started; to come back: team/two" in str(said)


def test_a_plan_that_cannot_be_asked_for_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ended([(WAITS, RUNS)], monkeypatch, [], refused="team/two: it is of a RayJob")
    assert str(said) == "team/two: it is of a RayJob; nothing was done"


def test_definitions_that_keep_no_moves_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ended([({"reason": "InsufficientResources"}, RUNS)], monkeypatch, ["add"])
    assert "kubectl apply -k manifests/crds" in str(said)


def test_a_right_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    why = 'gangs.muster.dev "large" is forbidden: User "eve" cannot patch resource "gangs/status"'
    with pytest.raises(StandsInTheWay) as caught:
        carried_out(Played([(WAITS, RUNS)], refuses=why), monkeypatch)
    assert "eve may not patch" in str(caught.value)
    assert str(caught.value).endswith("nothing was done")

"""The story of a gang says in lines what was seen of it and what was decided."""

import re
from pathlib import Path

import pytest

from coordinator.messages.clock import Moment
from coordinator.messages.events import (
    ClusterSeen,
    Event,
    PodPatchEnded,
    SightLost,
    SightRegained,
    TermEnded,
    TermStarted,
)
from coordinator.replay.lines import open_recording, start_line, step_line
from coordinator.replay.story import UnknownGangError, tell
from kube.objects.base import ObjectMeta
from kube.objects.ray import RayCluster
from scheduling.model.gang import GangKey
from tests.replay.recorded import MUSTER, path_of

NEEDED = "1 of 1 headgroup, 1 of 1 workers"


def story(name: str, gang: str = "a") -> list[str]:
    """The sentences of a recording, without their times."""
    told = tell(open_recording(path_of(name)), GangKey("team", gang))
    return [re.sub(r"-\d{5}\b", "", line[24:].strip()) for line in told]


def test_a_lost_worker_and_a_lost_node_are_told() -> None:
    told = story("lost-worker")
    assert told[:10] == [
        "saw  this coordinator leads from now on (term 2)",
        "saw  2 pods came, with Muster's gate: a-headgroup, a-workers",
        "saw  the RayCluster is there, made at 2026-01-01T00:00:00Z",
        f"did  understood as a gang of queue default; to start it needs {NEEDED}",
        "did  Admitted: 2 pods placed on 1 node",
        "did  placed headgroup: 1 on n1; workers: 1 on n1",
        "did  released to n1: a-headgroup",
        "did  released to n1: a-workers",
        "saw  2 pods bound to n1: a-headgroup, a-workers",
        "saw  2 pods ready: a-headgroup, a-workers",
    ]
    for sentence in (
        "saw  1 pod gone: a-workers",
        "saw  node n1 is gone",
        "did  the placement is given back",
        "did  placed headgroup: 1 on n2; workers: 1 on n2",
    ):
        assert sentence in told, sentence
    assert told[-1] == "did  Running: the minimum is ready"


def test_who_is_stopped_for_whom_is_told_and_nothing_of_others() -> None:
    low, high = story("preempted", "low"), story("preempted", "high")
    said = "Preempted: stopped for RayCluster team/high (priority 10, queue team)"
    assert f"did  gang stopped, {said}" in low
    assert "did  evicted: low-workers" in low
    assert any("QuotaExceeded: queue team uses 1 of its quota of 2 cpu" in each for each in low)
    assert not any("low" in each for each in high)


def test_a_held_start_and_its_end_are_told() -> None:
    told = story("held")
    assert any(each.startswith("did  Queued, NeverFits: ") for each in told)
    assert "did  the RayCluster is resumed, so that its pods are created" in told
    assert "saw  the RayCluster is gone" in told


def test_slots_that_are_kept_and_end_are_told() -> None:
    assert "did  1 slot of workers kept for lost pods" in story("held")


def test_an_unknown_gang_has_the_names_near_it() -> None:
    with pytest.raises(
        UnknownGangError, match=r"^team/hihg: not in this recording; there are team/high"
    ):
        list(tell(open_recording(path_of("preempted")), GangKey("team", "hihg")))


def of_events(tmp_path: Path, *steps: list[Event]) -> list[str]:
    """The story of gang team/a where these events are seen, at one second each."""
    recorded = open_recording(path_of("held"))
    lines = [start_line(MUSTER, recorded.settings)]
    for at, events in enumerate(steps, 1):
        moment = Moment(float(at), f"2026-01-01T00:00:0{at}Z", at + 0.25)
        lines.append(step_line(at, moment, events, []))
    path = tmp_path / "made.jsonl"
    path.write_bytes(b"".join(lines))
    return list(tell(open_recording(path), GangKey("team", "a")))


A = RayCluster(ObjectMeta(name="a", namespace="team", uid="u"))


def test_times_are_those_of_the_steps(tmp_path: Path) -> None:
    told = of_events(tmp_path, [TermStarted(1)], [ClusterSeen(A)])
    assert [each.partition("  ")[0] for each in told] == [
        "2026-01-01T00:00:01.250Z",
        "2026-01-01T00:00:02.250Z",
    ]


def test_what_the_coordinator_does_not_see_is_told(tmp_path: Path) -> None:
    told = of_events(
        tmp_path,
        [ClusterSeen(A)],
        [SightLost("pods")],
        [SightRegained("pods")],
        [PodPatchEnded(GangKey("team", "a"), "x", "no\nway\x1b[31m")],
        [PodPatchEnded(GangKey("team", "b"), "x", "no")],
        [TermEnded()],
    )
    assert [each[26:] for each in told[1:]] == [
        "saw  the watch of pods is down: nothing is decided meanwhile",
        "saw  the watch of pods is back",
        "saw  a write to pod of uid x failed: no way?[31m",
        "saw  this coordinator leads no more",
    ]

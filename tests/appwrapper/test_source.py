"""What the gang of an AppWrapper is decided by, where its phase or its spec says it."""

import msgspec
import pytest

from appwrapper.gang.source import WrapperSource
from appwrapper.gang.stand_in import StandIn
from appwrapper.phases import Phase
from kube.gang.source import Stage
from kube.objects.base import ObjectMeta

STAGES = {
    Phase.NEW: Stage.QUEUED,
    Phase.SUSPENDED: Stage.QUEUED,
    Phase.RESUMING: Stage.CREATING,
    Phase.RUNNING: Stage.ACTIVE,
    Phase.SUSPENDING: Stage.LEAVING,
    Phase.RESETTING: Stage.LEAVING,
    Phase.SUCCEEDED: Stage.OVER,
    Phase.FAILED: Stage.OVER,
    Phase.TERMINATING: Stage.OVER,
}


def source(
    phase: str = "", *, stopped: bool = False, said: str = "", gone: str = ""
) -> WrapperSource:
    meta = ObjectMeta(name="appwrapper.a", uid="u", deletion_timestamp=gone or None)
    api, bare = "workload.codeflare.dev/v1beta2", frozenset(("pod",))
    found = StandIn(meta, api_version=api, phase=phase, said=said, bare=bare)
    return WrapperSource(msgspec.structs.replace(found, stopped_by_user=stopped))


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_is_a_stage(phase: Phase) -> None:
    assert source(phase).stage is STAGES[phase]


def test_a_phase_of_others_is_over() -> None:
    assert source("Paused").stage is Stage.OVER


def test_why_it_stopped_is_said_where_none_asked_for_that() -> None:
    assert source("Resetting", said="a quota").why_stopped == "a quota"
    assert source("Suspended").why_stopped
    assert source("Suspending", said="a quota").why_stopped == "a quota"
    assert not source("Suspended", stopped=True, said="spec.suspend is true").why_stopped


def test_only_pods_of_their_own_are_not_made_again_and_those_go_with_it() -> None:
    assert source().replaces("workers")
    assert not source().replaces("pod")
    assert source(gone="2026-01-01T00:00:00Z").replaces("pod")


def test_its_gang_goes_with_it_and_not_with_what_stands_in_for_it() -> None:
    found = source().owner
    assert (found.kind, found.name, found.uid) == ("AppWrapper", "a", "u")
    assert found.api_version == "workload.codeflare.dev/v1beta2"

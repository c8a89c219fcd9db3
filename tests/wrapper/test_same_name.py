"""AppWrappers of one name in both API groups: what is told of one says nothing of the other."""

import msgspec
import pytest

from appwrapper.phases import Phase
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.objects.base import ObjectMeta
from kube.ray.wrapped_by import gang_name, labels_of_group
from runtime.controller.moment import Moment
from tests.wrapper.world import BEGAN, codeflare, job
from wrapper.messages import (
    Action,
    Event,
    GangSeen,
    PodSeen,
    TermStarted,
    WrapperSeen,
    WriteStatus,
)
from wrapper.reading import CountedPod, WrappedGang, pod_of, signal_of, wrapper_of
from wrapper.state_machine import WrapperState

VERSIONS = (names.CODEFLARE_V1BETA2, names.MCAD_V1BETA1)
MOMENT = Moment(1.0, "2026-01-01T00:00:00Z", BEGAN)


def seen(version: str) -> Event:
    found = codeflare(job())
    found["metadata"]["uid"] = version
    wrapper = wrapper_of(msgspec.json.decode(msgspec.json.encode(found), type=AppWrapper), version)
    assert wrapper is not None
    return WrapperSeen(wrapper)


def placed(version: str) -> Event:
    gang = {
        "metadata": {"name": gang_name(version.partition("/")[0], "aw"), "namespace": "ns"},
        "spec": {"rayClusterUid": version},
        "status": {"held": {"phase": "Waiting", "generation": 1}, "placement": {"podSets": []}},
    }
    body = msgspec.json.encode(gang)
    signal = signal_of(msgspec.json.decode(body, type=WrappedGang))
    assert signal is not None
    return GangSeen(signal)


def ending(version: str) -> Event:
    """A pod of an earlier AppWrapper of the name, in one of the groups."""
    own = {names.APP_WRAPPER: "aw", names.APP_WRAPPER_UID: "earlier"}
    meta = ObjectMeta("p", "ns", uid="p", labels={**own, **labels_of_group(version)})
    gone = msgspec.structs.replace(meta, deletion_timestamp="2026-01-01T00:00:00Z")
    pod = pod_of(CountedPod(gone))
    assert pod is not None
    return PodSeen(pod)


def started(actions: list[Action]) -> list[str]:
    writes = (each for each in actions if isinstance(each, WriteStatus))
    return [each.key.group for each in writes if each.status.phase == Phase.RESUMING]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_place_starts_the_one_that_has_it(version: str) -> None:
    state = WrapperState()
    events = [*map(seen, VERSIONS), placed(version), TermStarted()]
    assert started(state.handle(events, MOMENT)) == [version.partition("/")[0]]


@pytest.mark.parametrize("version", VERSIONS)
def test_only_pods_of_its_own_group_are_waited_for(version: str) -> None:
    state = WrapperState()
    events = [*map(seen, VERSIONS), *map(placed, VERSIONS), ending(version), TermStarted()]
    (other,) = {*VERSIONS} - {version}
    assert started(state.handle(events, MOMENT)) == [other.partition("/")[0]]

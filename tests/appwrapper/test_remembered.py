"""A spec is read once in each of its states, and what is remembered is bounded."""

import msgspec
import pytest

from appwrapper.gang import watched
from appwrapper.gang.watched import AppWrapperReading
from appwrapper.remembered import Remembered
from appwrapper.spec.items import read
from appwrapper.spec.wrapped import Wrapped
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from tests.coordinator.app_wrappers import app_wrapper, job
from wrapper import reading
from wrapper.reading import Reading


def test_what_is_remembered_is_bounded_and_the_oldest_makes_way() -> None:
    kept: Remembered[int] = Remembered(most=2)
    made = [kept.of(uid, 0, [at].pop) for at, uid in enumerate("abcab")]
    assert made == [0, 1, 2, 3, 4]
    assert kept.of("b", 0, lambda: -1) == 4
    assert kept.of("b", 1, lambda: -1) == -1


def version(generation: int, **annotations: str) -> AppWrapper:
    found = app_wrapper("a", job("work", 2))
    found["metadata"] |= {"uid": "u", "generation": generation}
    found["metadata"]["annotations"] |= annotations
    return msgspec.json.decode(msgspec.json.encode(found), type=AppWrapper)


@pytest.mark.parametrize("program", [watched, reading])
def test_changes_that_mean_nothing_to_muster_have_no_spec_read_again(
    program: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: list[int] = []

    def counted(wrapper: AppWrapper) -> Wrapped:
        readings.append(wrapper.metadata.generation)
        return read(wrapper)

    monkeypatch.setattr(program, "read", counted)
    project = AppWrapperReading() if program is watched else Reading(names.CODEFLARE_V1BETA2)
    for at in range(5):
        project(version(1, **{"example.com/note": str(at)}))
    assert readings == [1]
    project(version(2))
    project(version(2, **{names.FENCE: "x"}))
    assert readings == [1, 2, 2]
    assert project(version(2)) == project(version(2))

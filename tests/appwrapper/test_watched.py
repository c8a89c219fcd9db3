"""AppWrappers as they are watched: what of them is news, and what is kept."""

import msgspec
import pytest
from msgspec.structs import replace

from appwrapper.gang.source import WrapperSource
from appwrapper.gang.stand_in import StandIn
from appwrapper.gang.watched import AppWrapperReading, as_gang
from kube.api.watch.events import Deleted
from kube.api.watch.store import Store
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.ray.gang_terms import HEAD
from tests.coordinator.app_wrappers import app_wrapper, config_map, job
from tests.coordinator.builders import Json


def seen(wrapper: Json, **status: object) -> AppWrapper:
    wrapper["metadata"] |= {"uid": "u", "generation": 3}
    return msgspec.json.decode(msgspec.json.encode(wrapper | {"status": status}), type=AppWrapper)


def test_a_change_of_its_phase_or_message_is_news() -> None:
    one = AppWrapperReading()(seen(app_wrapper("a", job("work", 2)), phase="Running"))
    said = [
        WrapperSource(each).content
        for each in (one, replace(one), replace(one, phase="Succeeded"), replace(one, said="why"))
    ]
    assert said[0] == said[1]
    assert said[0] not in said[2:]


def test_a_watch_finds_it_again_by_its_own_name() -> None:
    store: Store[StandIn] = Store()
    found = seen(app_wrapper("a", job("work", 2)))
    store.change(AppWrapperReading()(found))
    assert store.drop(found.metadata) == [Deleted(AppWrapperReading()(found))]


def test_its_generation_counts_changes_of_its_phase_and_templates_go_once_it_is_over() -> None:
    found = app_wrapper("a", config_map("c"), job("work", 2))
    waiting = AppWrapperReading()(seen(found))
    active = AppWrapperReading()(seen(found, phase="Resuming", transitionCount=1))
    assert (waiting.metadata.generation, active.metadata.generation) == (3, 4)
    assert (waiting.edited, active.edited) == (3, 3)
    assert (waiting.spec.suspend, active.spec.suspend) == (True, False)
    over = AppWrapperReading()(seen(found, phase="Succeeded", transitionCount=2))
    read = [len(each.spec.worker_group_specs[0].template) for each in (waiting, active, over)]
    assert min(read[:2]) > 100
    assert read[2] <= len("null")


def test_it_is_a_gang_without_a_head_whatever_it_says() -> None:
    found = app_wrapper("a", job("work", 2))
    found["metadata"]["labels"][names.OPT_IN] = "false"
    found["metadata"]["annotations"][names.CREATE_PODS] = names.CREATE_ALWAYS
    stand_in = as_gang(AppWrapperReading()(seen(found)))
    assert stand_in.metadata.name == "appwrapper.a"
    assert stand_in.metadata.labels[names.OPT_IN] == "true"
    assert stand_in.metadata.annotations[names.CREATE_PODS] == names.CREATE_WHEN_ADMITTED
    sets = {each.name: each.count for each in WrapperSource(stand_in).resumed().pod_sets_wanted}
    assert list(sets.values()) == [2]
    assert HEAD not in sets


@pytest.mark.parametrize("spec", [{}, {"components": 3}, {"components": [None]}, {"resources": []}])
def test_one_that_cannot_be_read_stops_no_watch(spec: Json) -> None:
    found = app_wrapper("a")
    stand_in = AppWrapperReading()(seen({**found, "spec": spec}))
    assert not stand_in.spec.worker_group_specs

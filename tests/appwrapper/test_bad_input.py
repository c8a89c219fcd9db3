"""Whatever is written into an AppWrapper, reading it ends with faults that are named."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appwrapper.completion import completion
from appwrapper.creation import created_object
from appwrapper.gang.pod_sets import foreseen_pods
from appwrapper.gang.stand_in import stand_in
from appwrapper.spec.faults import MOST_PARTS, MOST_PODS
from appwrapper.spec.items import read
from appwrapper.spec.paths import at, parse, written
from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen, NeverAdmitted, Unforeseeable
from kube.objects.app_wrapper import AppWrapper
from kube.objects.base import ObjectMeta
from kube.objects.pod_templates import PodTemplate
from tests.appwrapper.samples import (
    Json,
    config_map,
    deployment,
    job,
    obj,
    pod_spec,
    ray_cluster,
    ray_spec,
    sizes,
    template,
    wrapper,
)
from tests.examples import examples

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from([-1, 10**9, 2**63, 2**80, 1.5, 1e300]),
    st.text(max_size=5),
    st.sampled_from(["template.spec.template", "lots", "1", "muster.dev/pod-set", "5s"]),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)

CODEFLARE: Json = {
    "suspend": False,
    "managedBy": "",
    "components": [
        {
            "podSets": [{"path": "template.spec.template", "replicas": 2}],
            "podSetInfos": [{"labels": {"a": "b"}, "tolerations": [{"key": "a"}]}],
            "template": deployment(),
        },
        {"template": job()},
        {"template": ray_cluster("rc", enableInTreeAutoscaling=True)},
        {"template": obj("ray.io/v1", "RayJob", "rj", spec={"rayClusterSpec": ray_spec()})},
        {"template": obj("v1", "Pod", "p", spec=pod_spec())},
        {"template": config_map()},
        {
            "template": obj(
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                "js",
                spec={"replicatedJobs": [{"name": "a", "template": job()}]},
            )
        },
        {
            "podSets": [{"path": "template.spec.parts[0].template"}],
            "template": obj("example.org/v1", "T", "t", spec={"parts": [{"template": template()}]}),
        },
    ],
}
MCAD: Json = {
    "priority": 1,
    "priorityslope": 0.5,
    "schedulingSpec": {
        "minAvailable": 2,
        "requeuing": {"timeInSeconds": 5, "growthType": "none"},
        "dispatchDuration": {"limit": 5},
    },
    "resources": {
        "GenericItems": [
            {
                "replicas": 1,
                "generictemplate": each,
                "custompodresources": sizes((1, 1), (1, "2")),
                "completionstatus": "Complete",
            }
            for each in (deployment(), ray_cluster("rc"), obj("example.org/v1", "T", "t"))
        ]
    },
}


def places(found: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a value where something else could stand."""
    inner: Any = ()
    if isinstance(found, dict):
        inner = found.items()
    elif isinstance(found, list):
        inner = enumerate(found)
    return [path, *(each for key, part in inner for each in places(part, (*path, key)))]


def put(found: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = found.copy()
    copy[path[0]] = put(found[path[0]], path[1:], value)
    return copy


def survives(found: AppWrapper) -> None:
    """Do with an AppWrapper all that is done with one; nothing may raise."""
    wrapped = read(found)
    for fault in wrapped.faults:
        assert fault.field
        assert fault.allowed
        assert "is not valid; allowed: " in fault.message
        assert len(fault.message) < 2000
    gang = stand_in(found, wrapped)
    outlook = foreseen_pods(gang, Admission())
    assert isinstance(outlook, Foreseen | NeverAdmitted | Unforeseeable)
    if wrapped.faults:
        assert isinstance(outlook, NeverAdmitted)
        return
    assert sum(each.count for item in wrapped.items for each in item.pod_sets) <= MOST_PODS
    for item in wrapped.items:
        made = created_object(item, found.metadata, found.api_version, wrapped.generation)
        msgspec.json.encode(made)
        for each in item.pod_sets:
            assert 0 <= each.minimum <= each.count
            assert each.path is None or msgspec.convert(at(made, each.path), PodTemplate)
    completion(wrapped, {}, pods_left=0)


def test_the_samples_are_fine() -> None:
    for spec in (CODEFLARE, MCAD):
        assert read(wrapper(spec)).faults == ()
        survives(wrapper(spec))


@examples(300)
@given(
    st.sampled_from([CODEFLARE, MCAD]).flatmap(
        lambda spec: st.tuples(st.just(spec), st.sampled_from(places(spec)), ANYTHING)
    )
)
def test_anything_may_stand_anywhere(case: tuple[Json, tuple[Any, ...], Any]) -> None:
    spec, path, value = case
    try:
        found = AppWrapper(
            metadata=ObjectMeta("aw", "ns", "u-1"),
            spec=msgspec.Raw(msgspec.json.encode(put(spec, path, value))),
        )
    except msgspec.MsgspecError:  # a number that JSON's writer does not take
        return
    survives(found)


@given(st.dictionaries(st.sampled_from(["components", "resources", "suspend", "x"]), ANYTHING))
def test_any_spec_is_read(spec: Any) -> None:
    survives(AppWrapper(spec=msgspec.Raw(msgspec.json.encode(spec))))


@given(st.binary(max_size=50))
def test_bytes_that_are_no_json_are_a_fault(raw: bytes) -> None:
    found = AppWrapper(spec=msgspec.Raw(raw))
    wrapped = read(found)
    assert wrapped.faults or wrapped.items == ()
    survives(found)


def test_a_key_that_is_no_utf8_is_a_fault() -> None:
    (fault,) = read(AppWrapper(spec=msgspec.Raw(b'{"\xffcomponents": []}'))).faults
    assert fault.field == "spec"
    assert fault.allowed == "JSON"


def test_json_that_is_nested_without_end_is_a_fault() -> None:
    deep = b'{"components":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    (fault,) = read(AppWrapper(spec=msgspec.Raw(deep))).faults
    assert fault.value == "nested too deeply"


@pytest.mark.parametrize("within", [True, False])
def test_more_lists_and_maps_than_are_read_quickly_are_a_fault(within: bool) -> None:
    some = MOST_PARTS - 10 if within else MOST_PARTS
    data = b'{"components":[{"template":{"x":[' + b",".join([b"{}"] * some) + b"]}}]}"
    values = [fault.value for fault in read(AppWrapper(spec=msgspec.Raw(data))).faults]
    assert (f"more than {MOST_PARTS}" in values) is not within


@given(st.lists(st.one_of(st.from_regex(r"\A[a-zA-Z]\w*\Z"), st.integers(0, 99)), max_size=5))
def test_a_path_that_is_written_is_read_again(path: list[str | int]) -> None:
    assert parse(written(tuple(path))) == tuple(path)


@given(st.text(max_size=30))
def test_any_text_is_read_as_a_path_or_none(text: str) -> None:
    parse(text)
    parse(f"template{text}")

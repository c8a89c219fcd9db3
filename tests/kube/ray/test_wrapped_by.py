"""Which AppWrapper an object is made for, and which a Gang is named after."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kube.codec.observed_pod import observe
from kube.objects import names
from kube.objects.base import ObjectMeta, OwnerReference
from kube.objects.core import Pod
from kube.ray.wrapped_by import (
    WrapperName,
    gang_name,
    is_made_for_wrapper,
    labels_of_group,
    unwrapped,
    wrapped_by,
    wrapper_of_gang,
)
from scheduling.model.gang import GangKey

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?(\.[a-z0-9]{1,8})?", fullmatch=True)
GROUPS = (names.CODEFLARE_GROUP, names.MCAD_GROUP)
LABELS = {names.APP_WRAPPER: "a", names.APP_WRAPPER_UID: "u"}


@given(NAMES | st.builds("mcad.{}".format, NAMES), NAMES)
def test_no_two_app_wrappers_have_gangs_of_one_name(one: str, other: str) -> None:
    gangs = {gang_name(group, name): (group, name) for group in GROUPS for name in (one, other)}
    assert len(gangs) == len(GROUPS) * len({one, other})
    assert {gang: wrapper_of_gang(gang) for gang in gangs} == gangs


@pytest.mark.parametrize("name", ["a", "appwrapper", "appwrapper-mcad", "app.wrapper"])
def test_no_ray_cluster_has_a_gang_of_such_a_name(name: str) -> None:
    assert wrapper_of_gang(name) is None


@pytest.mark.parametrize("version", names.APP_WRAPPER_API_VERSIONS)
def test_labels_tell_the_group_and_a_pod_is_of_that_gang(version: str) -> None:
    group = version.partition("/")[0]
    labels = {**LABELS, **labels_of_group(version)}
    assert wrapped_by(labels) == (group, "a", "u")
    member = observe(Pod(ObjectMeta("p", "team", labels=labels))).member
    assert member is not None
    assert member.gang == GangKey("team", gang_name(*WrapperName(group, "a")))


@pytest.mark.parametrize("label", [names.APP_WRAPPER, names.APP_WRAPPER_UID])
def test_a_label_alone_means_nothing(label: str) -> None:
    assert wrapped_by({**LABELS, label: ""}) is None
    assert wrapped_by({key: value for key, value in LABELS.items() if key != label}) is None


def test_another_group_has_no_app_wrappers() -> None:
    assert wrapped_by({**LABELS, names.APP_WRAPPER_GROUP: "example.com"}) is None


@pytest.mark.parametrize("kind", ["RayJob", "RayService", "AppWrapper", "Deployment", ""])
def test_a_ray_cluster_is_wrapped_by_what_controls_it_not_by_its_labels(kind: str) -> None:
    owner = OwnerReference(kind=kind, name="a", uid="o", controller=True)
    meta = ObjectMeta("rc", "team", labels=LABELS, owner_references=(owner,) if kind else ())
    assert is_made_for_wrapper(meta) is (kind in ("RayJob", "RayService"))
    meta = replace(meta, owner_references=(replace(owner, uid="u"),))
    assert is_made_for_wrapper(meta)
    assert not is_made_for_wrapper(meta, unwrapped)


def test_where_there_are_no_app_wrappers_a_labelled_pod_is_of_its_ray_cluster() -> None:
    owner = OwnerReference("ray.io/v1", "RayCluster", "rc", uid="r", controller=True)
    ray = {names.RAY_GROUP: "workers", names.RAY_NODE_TYPE: "worker"}
    labels = {**LABELS, names.POD_SET: "x", **ray}
    pod = Pod(ObjectMeta("p", "team", labels=labels, owner_references=(owner,)))
    seen = observe(pod, wrapper_of=unwrapped)
    assert seen.member is not None
    assert (seen.member.gang.name, seen.member.cluster_uid) == ("rc", "r")
    assert (seen.member.pod_set, seen.holder.kind) == ("workers", "RayCluster")
    member = observe(pod).member
    assert member is not None
    assert member.gang.name == "appwrapper.a"

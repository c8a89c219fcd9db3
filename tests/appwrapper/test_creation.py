"""What is created is the item as it was written, with an owner and labels beside."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appwrapper.creation import created_object, labels_of
from appwrapper.spec.paths import at
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from tests.appwrapper.samples import (
    Json,
    codeflare,
    component,
    config_map,
    deployment,
    fine,
    job,
    mcad,
    mcad_item,
    obj,
    pod_spec,
    ray_cluster,
    ray_spec,
    said,
)

OURS = {names.APP_WRAPPER: "aw", names.APP_WRAPPER_UID: "u-1"}


def created(found: AppWrapper) -> Json:
    wrapped = fine(found)
    (item,) = wrapped.items
    return created_object(item, found.metadata, found.api_version, wrapped.generation)


def without_ours(found: AppWrapper, made: Json) -> Json:
    """Take away what is added, and the maps that were only made for that."""
    (item,) = fine(found).items
    made = deepcopy(made)
    del made["metadata"]["ownerReferences"]
    if at(item.found, ("metadata", "namespace")) is None:
        del made["metadata"]["namespace"]
    added = {*labels_of(found.metadata, found.api_version, fine(found).generation), names.POD_SET}
    if names.MCAD_LABEL in added:
        added.add(names.MCAD_ITEM_LABEL)
    for path in {(), *(each.path for each in item.pod_sets if each.path is not None)}:
        metadata = at(made, (*path, "metadata"))
        labels = {key: value for key, value in metadata["labels"].items() if key not in added}
        metadata["labels"] = labels
        if not labels and at(item.found, (*path, "metadata", "labels")) is None:
            del metadata["labels"]
        if not metadata and at(item.found, (*path, "metadata")) is None:
            del at(made, path)["metadata"]
    return made


KINDS = [
    config_map(),
    deployment(),
    job(),
    ray_cluster("rc"),
    obj("v1", "Pod", "p", spec=pod_spec()),
    obj("ray.io/v1", "RayJob", "rj", spec={"rayClusterSpec": ray_spec(), "entrypoint": "x"}),
    {**config_map(), "metadata": {"name": "c", "namespace": "ns", "annotations": {"a": "b"}}},
]


@pytest.mark.parametrize("made_of", KINDS, ids=lambda each: each["kind"])
def test_nothing_but_ours_is_changed(made_of: Json) -> None:
    for found in (codeflare(made_of), mcad(mcad_item(made_of))):
        assert without_ours(found, created(found)) == made_of


@given(
    st.dictionaries(st.text("abc/", min_size=1), st.text("abc"), max_size=3),
    st.dictionaries(st.text("abc/", min_size=1), st.text("abc"), max_size=3),
    st.integers(0, 5),
)
def test_labels_of_any_names_stay(object_labels: Json, pod_labels: Json, replicas: int) -> None:
    made_of = deployment(replicas=replicas)
    made_of["metadata"]["labels"] = object_labels
    made_of["spec"]["template"]["metadata"]["labels"] = pod_labels
    found = codeflare(made_of)
    assert without_ours(found, created(found)) == made_of


def test_the_app_wrapper_owns_what_is_created() -> None:
    """So that Kubernetes deletes all of it with the AppWrapper."""
    metadata = created(codeflare(config_map()))["metadata"]
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "workload.codeflare.dev/v1beta2",
            "kind": "AppWrapper",
            "name": "aw",
            "uid": "u-1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert metadata["namespace"] == "ns"


def test_pods_are_labelled_in_their_templates() -> None:
    """With no gate: pods that are made once the webhook is gone are plain pods."""
    made = created(codeflare(ray_cluster("rc")))
    theirs = {**OURS, names.CODEFLARE_LABEL: "aw"}
    assert made["metadata"]["labels"] == theirs
    head = made["spec"]["headGroupSpec"]["template"]
    assert head["metadata"]["labels"] == {**theirs, names.POD_SET: "rc.headgroup"}
    worker = made["spec"]["workerGroupSpecs"][0]["template"]
    assert worker["metadata"]["labels"] == {**theirs, names.POD_SET: "rc.small-group"}
    assert "schedulingGates" not in head["spec"]
    assert "schedulingGates" not in worker["spec"]


def test_a_pod_is_labelled_itself_and_mcads_labels_stay() -> None:
    made = created(mcad(mcad_item(obj("v1", "Pod", "p", spec=pod_spec()))))
    assert made["metadata"]["labels"] == {
        **OURS,
        names.MCAD_LABEL: "aw",
        names.MCAD_ITEM_LABEL: "p",
        names.POD_SET: "p",
    }


def test_what_is_written_is_not_changed_by_creating_it() -> None:
    made_of = deployment()
    before = deepcopy(made_of)
    wrapped = fine(codeflare(made_of))
    created(codeflare(made_of))
    assert (made_of, wrapped.items[0].found) == (before, before)


# --- podSetInfos


INFO: Json = {
    "annotations": {"a": "1"},
    "labels": {"tier": "gold", "app": "work"},
    "nodeSelector": {"pool": "gpu"},
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "schedulingGates": [{"name": "example.org/topology"}],
}


def test_what_admission_adds_to_a_template_is_created() -> None:
    made_of = deployment(tolerations=[{"key": "own"}])
    made = created(component(made_of, podSetInfos=[INFO]))["spec"]["template"]
    assert made["metadata"]["annotations"] == {"a": "1"}
    assert made["metadata"]["labels"].items() >= {"tier": "gold", "app": "work"}.items()
    assert made["spec"]["nodeSelector"] == {"pool": "gpu"}
    assert made["spec"]["tolerations"] == [{"key": "own"}, {"key": "gpu", "operator": "Exists"}]
    assert made["spec"]["schedulingGates"] == [{"name": "example.org/topology"}]
    assert made["spec"]["containers"] == made_of["spec"]["template"]["spec"]["containers"]


def test_what_admission_adds_goes_to_the_template_that_is_declared() -> None:
    paths = [
        {"path": "template.spec.workerGroupSpecs[0].template"},
        {"path": "template.spec.headGroupSpec.template"},
    ]
    infos = [{"nodeSelector": {"pool": "workers"}}, {"nodeSelector": {"pool": "heads"}}]
    made = created(component(ray_cluster("rc"), podSets=paths, podSetInfos=infos))["spec"]
    assert made["headGroupSpec"]["template"]["spec"]["nodeSelector"] == {"pool": "heads"}
    worker = made["workerGroupSpecs"][0]["template"]
    assert worker["spec"]["nodeSelector"] == {"pool": "workers"}


def test_neither_of_two_values_wins_silently() -> None:
    info = {"labels": {"app": "other"}}
    assert said(component(deployment(), podSetInfos=[info])) == [
        (
            "spec.components[0] (Deployment web): template.spec.template.metadata.labels[app]: "
            '"work" is not valid; allowed: "other", as podSetInfos has it, or none'
        )
    ]
    (message,) = said(component(deployment(), podSetInfos=[{}, {}]))
    assert message.endswith('"2 entries" is not valid; allowed: 1, one for each pod set, or none')

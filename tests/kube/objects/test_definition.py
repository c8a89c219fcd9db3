"""What a served definition drops of the fields that a program writes is named, and nothing else."""

import copy
from typing import Any

import msgspec
import pytest

from kube.objects.crds.definition import Definition, lacks, some
from kube.objects.crds.muster import gang_crd, gang_queue_crd, written

Json = dict[str, Any]


def served(crd: Json) -> Definition:
    return msgspec.convert(crd, Definition)


def definition() -> Json:
    """That of this release, apart from the one that it is compared with."""
    return copy.deepcopy(gang_crd())


def schema_of(crd: Json) -> Json:
    schema: Json = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return schema


def placed_shape(crd: Json) -> Json:
    placement = schema_of(crd)["status"]["properties"]["placement"]["properties"]
    sets: Json = placement["podSets"]["items"]["properties"]["assignments"]["items"]
    return sets


@pytest.mark.parametrize("crd", [gang_crd(), gang_queue_crd()], ids=lambda c: c["metadata"]["name"])
def test_a_definition_of_this_release_lacks_nothing(crd: Json) -> None:
    assert lacks(served(crd), crd, "spec", "status") == ()


def test_a_field_is_named_by_its_path_however_deep() -> None:
    older = definition()
    del schema_of(older)["status"]["properties"]["decided"]
    del placed_shape(older)["properties"]["wave"]
    assert lacks(served(older), gang_crd(), "spec", "status") == (
        ".status.decided",
        ".status.placement.podSets[].assignments[].wave",
    )


def test_a_value_that_is_not_allowed_is_named() -> None:
    """The API server would refuse the whole write."""
    older = definition()
    schema_of(older)["status"]["properties"]["phase"]["enum"].remove("Failed")
    assert lacks(served(older), gang_crd(), "status") == (".status.phase=Failed",)


def test_only_what_is_written_counts() -> None:
    """What users write into the spec of a GangQueue is theirs."""
    older = copy.deepcopy(gang_queue_crd())
    del schema_of(older)["spec"]["properties"]["timeouts"]
    wanted, parts = written()[1]
    assert lacks(served(older), wanted, *parts) == ()
    assert lacks(served(older), wanted, "spec") == (".spec.timeouts",)


def test_a_newer_definition_lacks_nothing() -> None:
    newer = definition()
    schema_of(newer)["status"]["properties"]["future"] = {"type": "string"}
    schema_of(newer)["status"]["properties"]["phase"]["enum"].append("Resting")
    assert lacks(served(newer), gang_crd(), "spec", "status") == ()


@pytest.mark.parametrize("change", ["served", "name", "schema"])
def test_a_version_that_is_not_served_is_all_that_is_named(change: str) -> None:
    other = definition()
    version = other["spec"]["versions"][0]
    version[change] = {"served": False, "name": "v1beta1", "schema": {}}[change]
    said = lacks(served(other), gang_crd(), "status")
    assert said == ((".status",) if change == "schema" else ("version v1alpha1",))


def test_what_keeps_unknown_fields_lacks_none() -> None:
    open_ = definition()
    schema_of(open_)["status"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    assert lacks(served(open_), gang_crd(), "status") == ()


def test_the_first_few_are_named() -> None:
    assert some(("a", "b")) == "a, b"
    assert some(tuple("abcdefg")) == "a, b, c, d, e and 2 more"

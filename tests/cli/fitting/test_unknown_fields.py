"""Fields that the schema of a kind does not have are found without asking for a creation."""

from typing import Any

import pytest

from cli.fitting.unknown_fields import unknown_fields

KIND = ("ray.io/v1", "RayCluster")
ALSO_OF_MACHINERY = {"group": "ray.io", "version": "v1", "kind": "DeleteOptions"}
META = {"properties": {"name": {"type": "string"}, "labels": {"additionalProperties": {}}}}
GROUP = {
    "properties": {
        "groupName": {"type": "string"},
        "rayStartParams": {"type": "object", "additionalProperties": {"type": "string"}},
        "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "anything": {"type": "object"},
    }
}
SPEC = {"properties": {"workerGroupSpecs": {"type": "array", "items": GROUP}}}
DOCUMENT: dict[str, Any] = {
    "components": {
        "schemas": {
            "ObjectMeta": META,
            "DeleteOptions": {"x-kubernetes-group-version-kind": [ALSO_OF_MACHINERY]},
            "RayCluster": {
                "x-kubernetes-group-version-kind": [
                    {"group": "ray.io", "version": "v1", "kind": "RayCluster"}
                ],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"allOf": [{"$ref": "#/components/schemas/ObjectMeta"}]},
                    "spec": SPEC,
                },
            },
        }
    }
}


def found(spec: object, **more: object) -> list[str]:
    return unknown_fields(DOCUMENT, *KIND, {"kind": "RayCluster", "spec": spec, **more})


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"workerGroupSpecs": [{"groupName": "a"}]}, []),
        ({"workerGroupSpec": []}, ["spec.workerGroupSpec"]),
        (
            {"workerGroupSpecs": [{}, {"size": 1, "name": 2}]},
            ["spec.workerGroupSpecs[1].size", "spec.workerGroupSpecs[1].name"],
        ),
        ({"workerGroupSpecs": [{"rayStartParams": {"x": "1"}}]}, []),
        ({"workerGroupSpecs": [{"template": {"speck": 1}, "anything": {"goes": 1}}]}, []),
    ],
)
def test_a_field_that_the_schema_does_not_have_is_found(spec: object, fields: list[str]) -> None:
    assert found(spec) == fields


def test_schemas_that_are_referred_to_count() -> None:
    assert found({}, metadata={"name": "x", "labels": {"any": "1"}}) == []
    assert found({}, metadata={"nmae": "x"}) == ["metadata.nmae"]


@pytest.mark.parametrize("spec", [None, 7, "text", [1], {"workerGroupSpecs": {"a": 1}}])
def test_a_value_of_another_type_has_no_unknown_field(spec: object) -> None:
    assert found(spec) == []


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"components": {"schemas": {}}},
        {"components": {"schemas": {"a": {"x-kubernetes-group-version-kind": None}}}},
    ],
)
def test_where_there_is_no_schema_of_the_kind_nothing_is_unknown(document: dict[str, Any]) -> None:
    assert unknown_fields(document, *KIND, {"spec": {"x": 1}}) == []

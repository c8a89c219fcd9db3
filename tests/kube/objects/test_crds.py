"""The CRD files are generated from the models, which match what programs read and write."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from kube.codec.placement import placement_to_status
from kube.objects import names
from kube.objects.clusters.dispatch import QUOTA_RESERVED, is_its_turn, is_to_end
from kube.objects.clusters.member_cluster import ACTIVE, MemberCluster
from kube.objects.crds.__main__ import crd_yaml, main
from kube.objects.crds.app_wrapper import codeflare_crd, mcad_crd
from kube.objects.crds.muster import gang_crd, gang_offer_crd, gang_queue_crd, member_cluster_crd
from kube.objects.gang import Gang, GangStatus
from kube.objects.queues.queue import GangQueue, GangQueueSpec, QueueSelector
from kube.objects.schema import QUANTITY_PATTERN, structural_schema
from scheduling.model.placement import Assignment, Placement
from scheduling.model.quantity import MAX_TEXT, BadQuantity, request_amount

Json = dict[str, Any]
MANIFESTS = Path(__file__).parents[3] / "manifests"
CRDS = [gang_crd(), gang_queue_crd(), gang_offer_crd(), member_cluster_crd()]
WRAPPERS = [codeflare_crd(), mcad_crd()]


def schema_of(crd: Json) -> Json:
    found: Json = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


FILTER = re.compile(r"\[\?\(@\.type==\"\w+\"\)\]")


def below(schema: Json, path: str) -> Json:
    """Follow a path such as `status.podSets[]`."""
    for step in path.split("."):
        schema = schema["properties"][step.removesuffix("[]")]
        schema = schema["items"] if step.endswith("[]") else schema
    return schema


def levels(schema: Json) -> Iterator[Json]:
    yield schema
    for each in schema.get("properties", {}).values():
        yield from levels(each)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from levels(schema[key])


# ---- the files


def test_files_are_what_the_models_say() -> None:
    assert files_below(MANIFESTS, "**/crds*/*.yaml") == crd_yaml(), "run `make crds`"


def test_the_command_writes_the_files(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    assert files_below(tmp_path, "**/*.yaml") == crd_yaml()


def files_below(directory: Path, pattern: str) -> dict[str, str]:
    found = directory.glob(pattern)
    return {str(path.relative_to(directory)): path.read_text(encoding="utf-8") for path in found}


@pytest.mark.parametrize("text", crd_yaml().values())
def test_files_are_plain_yaml(text: str) -> None:
    found = yaml.safe_load(text)
    assert found in (*CRDS, *WRAPPERS)
    assert not re.search(r"[&*]id\d", text)


# ---- structural schemas


@pytest.mark.parametrize("crd", CRDS)
def test_schemas_are_structural(crd: Json) -> None:
    for level in levels(schema_of(crd)):
        assert not {"$ref", "$defs", "title", "const", "oneOf", "allOf", "nullable"} & {*level}
        if level.get("x-kubernetes-int-or-string"):
            assert level["anyOf"] == [{"type": "integer"}, {"type": "string"}]
            assert "type" not in level
        else:
            assert "anyOf" not in level
            assert level["type"] in ("object", "array", "string", "integer", "boolean")
        assert level.get("default", "x"), "a default that means nothing"


@pytest.mark.parametrize("crd", CRDS)
def test_lists_that_are_maps_have_their_keys_required(crd: Json) -> None:
    for level in levels(schema_of(crd)):
        for key in level.get("x-kubernetes-list-map-keys", ()):
            assert key in level["items"]["required"]


@pytest.mark.parametrize("crd", CRDS)
def test_rules_name_fields_that_exist(crd: Json) -> None:
    seen = 0
    for level in levels(schema_of(crd)):
        for rule in level.get("x-kubernetes-validations", ()):
            seen += 1
            fields = re.findall(r"self\.([a-zA-Z]+)\b(?!\()", rule["rule"])
            assert {*fields} <= {*level.get("properties", {})}
            assert rule["message"]
    assert seen >= 2


def test_a_reference_keeps_the_description_beside_it() -> None:
    found = structural_schema(GangQueueSpec)
    assert found["properties"]["namespaceSelector"]["description"].startswith("The namespaces")
    assert "matchLabels" in found["properties"]["namespaceSelector"]["properties"]


# ---- the definitions


def test_gang_is_namespaced_and_queue_is_not() -> None:
    assert [crd["spec"]["scope"] for crd in CRDS] == [
        "Namespaced",
        "Cluster",
        "Namespaced",
        "Cluster",
    ]
    assert gang_queue_crd()["spec"]["names"]["shortNames"] == ["gq"]


@pytest.mark.parametrize("crd", CRDS)
def test_group_version_and_status_subresource(crd: Json) -> None:
    (version,) = crd["spec"]["versions"]
    assert f"{crd['spec']['group']}/{version['name']}" == names.API_VERSION
    assert crd["metadata"]["name"] == f"{crd['spec']['names']['plural']}.{names.GROUP}"
    assert version["subresources"] == {"status": {}}
    assert version["served"]
    assert version["storage"]


def columns(crd: Json) -> list[Json]:
    found: list[Json] = crd["spec"]["versions"][0]["additionalPrinterColumns"]
    return found


def test_what_kubectl_get_gangs_shows() -> None:
    shown = [each["name"] for each in columns(gang_crd()) if not each.get("priority")]
    assert shown == ["Phase", "Queue", "Position", "Ready", "Reason", "Age"]
    assert columns(gang_crd())[-1] == {
        "name": "Message", "type": "string", "jsonPath": ".status.message", "priority": 1,
    }  # fmt: skip


@pytest.mark.parametrize("crd", CRDS)
def test_columns_show_fields_that_exist(crd: Json) -> None:
    for column in columns(crd):
        if column["name"] == "Age":
            continue
        path = FILTER.sub("[]", column["jsonPath"]).lstrip(".")
        assert below(schema_of(crd), path)["type"] == column["type"]


# ---- what is read and written


def test_a_queue_is_decoded_whole() -> None:
    """Each field that the API server allows is read."""
    selector = {"matchLabels": {"team": "a"}, "matchExpressions": []}
    spec = {
        "parent": "all", "quota": {"cpu": "8"}, "borrowingLimit": {"cpu": 4},
        "lendingLimit": {"cpu": "500m"}, "namespaceSelector": selector,
        "nodeSelector": {"zone": "z1"}, "nodeSelectorScope": "All",
        "ordering": "FIFO", "whenBlocked": "Strict", "whenBroken": "Requeue", "stop": "Hold",
        "whenClusterLost": "Requeue",
        "createPods": "WhenAdmitted",
        "ageing": {"maxPasses": 3, "maxWaitSeconds": 60}, "defaultDurationSeconds": 3600,
        "preemption": {
            "withinQueue": "LowerPriority", "reclaim": "Any",
            "whileBorrowing": "LowerPriority", "whileBorrowingMaxPriority": -5,
            "jobsMayBeLost": True, "deleteAfterSeconds": 600,
        },
        "timeouts": {
            "readySeconds": 7,
            "retries": 1,
            "backoffSeconds": 30,
            "createSeconds": 60,
            "slotSeconds": 0,
        },
        "provisioning": {"className": "a.b", "parameters": {"c": "d"}, "backoffSeconds": 9},
        "fairSharing": {"halfLifeSeconds": 3600, "weight": 2, "namespaceWeights": {"a": 3}},
        "clusters": {
            "selector": {"matchLabels": {"gpu": "h100"}}, "order": ["east", "west"],
            "lostAfterSeconds": 900,
        },
    }  # fmt: skip
    assert not misfits(spec, below(schema_of(gang_queue_crd()), "spec"))
    assert {*spec} == {*below(schema_of(gang_queue_crd()), "spec")["properties"]}
    read = msgspec.convert({"spec": spec}, GangQueue).spec
    assert read.namespace_selector == QueueSelector({"team": "a"})
    assert msgspec.json.decode(msgspec.json.encode(read)) == spec


def test_what_the_schema_refuses_is_still_read() -> None:
    """A Gang that is older than the schema, or was edited by hand, must be mended, not refused."""
    status = {"phase": "Odd", "decided": -1, "podSets": [{"name": ""}]}
    read = msgspec.convert({"status": status}, Gang).status
    assert (read.phase, read.decided, read.pod_sets[0].name) == ("Odd", -1, "")


def test_a_written_placement_fits_the_schema() -> None:
    requests = (("cpu", 1500), ("memory", 2**40), ("nvidia.com/gpu", 8), ("pods", 1))
    assignment = Assignment("gpu", "gpu-abcde", "0123456789ab", requests, (("n1", 2),), 1)
    written = placement_to_status(Placement((assignment,)), 7)
    assert not misfits(written, below(schema_of(gang_crd()), "status.placement"))


def misfits(value: Any, schema: Json) -> list[str]:
    """A small checker for what a structural schema says of a value."""
    if schema.get("x-kubernetes-int-or-string"):
        return [] if re.search(schema["pattern"], str(value)) else [f"{value} is no quantity"]
    if schema["type"] == "array":
        return [fault for each in value for fault in misfits(each, schema["items"])]
    if schema["type"] != "object":
        return (
            []
            if isinstance(value, {"string": str, "integer": int, "boolean": bool}[schema["type"]])
            else [value]
        )
    known, other = schema.get("properties", {}), schema.get("additionalProperties")
    found = [f"{key} is missing" for key in schema.get("required", ()) if key not in value]
    for key, each in value.items():
        below_key = known.get(key, other)
        found += misfits(each, below_key) if below_key else [f"{key} is not known"]
    return found


def test_the_epoch_may_only_grow() -> None:
    rules = below(schema_of(gang_crd()), "status.epoch")["x-kubernetes-validations"]
    assert [rule["rule"] for rule in rules] == ["self >= oldSelf"]


def test_phases() -> None:
    phase = below(schema_of(gang_crd()), "status.phase")
    assert phase["enum"] == [
        "Gathering",
        "Queued",
        "QuotaReserved",
        "Admitted",
        "Running",
        "Preempting",
        "Failed",
        "Finished",
    ]


@given(st.from_regex(QUANTITY_PATTERN, fullmatch=True))
def test_what_the_schema_takes_as_a_quantity_can_be_read(text: str) -> None:
    # A pattern bounds neither the length nor the value.
    assume(len(text) <= MAX_TEXT)
    with contextlib.suppress(TooLargeError):
        read_quantity(text)


class TooLargeError(Exception):
    pass


def read_quantity(text: str) -> int:
    try:
        return request_amount("memory", text)
    except BadQuantity as error:
        raise TooLargeError if "too large" in str(error) else error from error


@pytest.mark.parametrize("text", ["1", "1500m", "1.5", ".5", "8Gi", "1e3", "2E"])
def test_quantities(text: str) -> None:
    assert re.search(QUANTITY_PATTERN, text)


@pytest.mark.parametrize("text", ["", "-1", "1x", "Gi", "1 Gi", "one", "1e", "1\n"])
def test_no_quantities(text: str) -> None:
    assert not re.search(QUANTITY_PATTERN.replace("$", r"\Z"), text)


# ---- several clusters


def test_a_member_is_decoded_whole() -> None:
    spec = {
        "kubeconfigSecret": {"name": "east", "key": "config"},
        "state": "Cordoned",
        "users": "Same",
        "namespaces": ["research"],
    }
    assert not misfits(spec, below(schema_of(member_cluster_crd()), "spec"))
    assert {*spec} == {*below(schema_of(member_cluster_crd()), "spec")["properties"]}
    read = msgspec.convert({"spec": spec}, MemberCluster).spec
    assert msgspec.json.decode(msgspec.json.encode(read)) == spec


def test_a_member_needs_a_secret_alone() -> None:
    read = msgspec.convert({"spec": {"kubeconfigSecret": {"name": "east"}}}, MemberCluster).spec
    assert (read.kubeconfig_secret.key, read.state, read.namespaces) == ("kubeconfig", ACTIVE, ())


def dispatched(phase: str = QUOTA_RESERVED, **status: Any) -> GangStatus:
    return msgspec.convert({"phase": phase, "placement": {"epoch": 1}, **status}, GangStatus)


def test_a_gang_is_dispatched_while_its_quota_is_reserved() -> None:
    assert is_its_turn(dispatched())
    assert not is_its_turn(dispatched("Queued", placement=None))
    assert not is_its_turn(dispatched("Running"))


def test_an_attempt_that_is_closed_is_followed_once_the_coordinator_has_heard_of_it() -> None:
    closed = {"attempt": 3, "term": 1, "phase": "Closed", "cluster": "east"}
    assert not is_its_turn(dispatched(dispatch=closed))
    assert not is_its_turn(dispatched(dispatch=closed, dispatchAfter=2))
    assert is_its_turn(dispatched(dispatch=closed, dispatchAfter=3))
    assert is_its_turn(dispatched(dispatch={**closed, "phase": "Asked"}))


def test_a_gang_that_is_stopped_is_withdrawn_and_one_that_loses_surplus_is_not() -> None:
    assert is_to_end(dispatched("Preempting", evictions=[{"reason": "Preempted"}]))
    assert is_to_end(dispatched("Queued", placement=None))
    assert not is_to_end(dispatched(evictions=[{"reason": "Preempted", "replicas": ["g/a"]}]))


# ---- AppWrapper


@pytest.mark.parametrize("crd", WRAPPERS)
def test_all_versions_of_appwrapper_have_one_schema_and_its_status_a_path(crd: Json) -> None:
    versions = crd["spec"]["versions"]
    assert all(each["schema"] == versions[0]["schema"] for each in versions)
    assert all(each["subresources"] == {"status": {}} and each["served"] for each in versions)
    assert [each["storage"] for each in versions].count(True) == 1


def test_versions_of_appwrapper_are_those_that_are_read() -> None:
    served = [
        f"{crd['spec']['group']}/{version['name']}"
        for crd in WRAPPERS
        for version in crd["spec"]["versions"]
    ]
    assert tuple(served) == names.APP_WRAPPER_API_VERSIONS
    assert [version["storage"] for version in WRAPPERS[0]["spec"]["versions"]] == [True, False]


def test_wrapped_objects_are_kept_whole_and_nothing_gets_a_default() -> None:
    schema = schema_of(codeflare_crd())
    for path in (
        "spec.components[].template",
        "spec.resources.GenericItems[].generictemplate",
    ):
        found = below(schema, path)
        assert found["x-kubernetes-embedded-resource"] is True
        assert found["x-kubernetes-preserve-unknown-fields"] is True
    assert not [level for level in levels(schema) if "default" in level]
    assert below(schema, "status")["x-kubernetes-preserve-unknown-fields"] is True
    assert "x-kubernetes-preserve-unknown-fields" not in below(schema, "spec")


def test_rules_of_appwrapper_name_fields_that_exist() -> None:
    found = [
        (level, rule["rule"])
        for level in levels(schema_of(mcad_crd()))
        for rule in level.get("x-kubernetes-validations", ())
    ]
    assert len(found) == 3
    for level, rule in found:
        assert {*re.findall(r"self\.([a-zA-Z]+)\b(?!\()", rule)} <= {*level["properties"]}

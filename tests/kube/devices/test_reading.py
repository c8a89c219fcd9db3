"""Reading slices, classes, claims, templates and taint rules: what is not read is named."""

from typing import Any

import pytest
from hypothesis import given as draws
from hypothesis import strategies as st

from kube.devices.device_classes import classes_of_resources, device_class
from kube.devices.resource_claims import resource_claim, resource_claim_template
from kube.devices.resource_slices import resource_slice
from kube.devices.selectors import CelSelectors
from kube.devices.taint_rules import device_taint_rule, tainted
from kube.objects.core import DeviceObject
from scheduling.model.constraints import NodeTerm, Requirement, Toleration
from scheduling.model.devices.capacity import Capacity, RequestPolicy
from scheduling.model.devices.in_use import Share, taken_of
from scheduling.model.devices.resource_claim import (
    AllocatedDevice,
    Allocation,
    AllocationMode,
    ClaimSpec,
    DeviceRequest,
    DistinctAttribute,
    MatchAttribute,
    Request,
)
from scheduling.model.devices.resource_slice import (
    Attribute,
    AttributeKind,
    CounterSet,
    DeviceID,
    NodeAccess,
)
from scheduling.model.devices.selectors import Answer
from scheduling.model.node import Taint
from tests.kube.devices.objects import (
    GPU,
    NODE_IN_A,
    claim_spec,
    decoded,
    given,
    gpu,
    request,
    slice_spec,
)

IN_A = (NodeTerm((Requirement("zone", "In", ("a",)),)),)
BAD = {"key": "bad", "value": "", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}


# ---- slices


def test_a_slice_is_read_whole() -> None:
    found = resource_slice(decoded("s", slice_spec(gpu("gpu-0", taints=[BAD]), gpu("gpu-1"))))
    of = found.resource_slice
    assert found.problems == ()
    assert (of.name, of.driver, of.pool, of.generation, of.slice_count) == (
        "s",
        GPU,
        "node-1",
        2,
        1,
    )
    assert of.access == NodeAccess(node_name="node-1")
    assert [each.name for each in of.devices] == ["gpu-0", "gpu-1"]
    first, second = of.devices
    assert first.taints == (Taint("bad", "", "NoSchedule"),)
    assert (first.unsupported, second.taints) == ((), ())
    assert first.content == second.content
    assert first.content.capacity == (("memory", "80Gi"),)
    assert first.content.attribute(f"{GPU}/healthy") == Attribute(AttributeKind.BOOLEAN, 1)
    assert first.content.attribute(f"{GPU}/driverVersion") == Attribute(
        AttributeKind.VERSION, "570.86.15"
    )


def test_devices_may_say_by_themselves_which_nodes_reach_them() -> None:
    spec = slice_spec(
        gpu("a", nodeName="node-2"), gpu("b", nodeSelector=NODE_IN_A), gpu("c", allNodes=True)
    )
    del spec["nodeName"]
    of = resource_slice(decoded("s", {**spec, "perDeviceNodeSelection": True})).resource_slice
    assert of.access is None
    assert [each.access for each in of.devices] == [
        NodeAccess(node_name="node-2"),
        NodeAccess(node_selector=IN_A),
        NodeAccess(all_nodes=True),
    ]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"capacity": {"memory": {"value": "1Gi", "requestPolicy": {}}}},
            "requestPolicy of a capacity",
        ),
        ({"nodeAllocatableResources": {"cpu": {}}}, "nodeAllocatableResources"),
        ({"attributes": {"ids": {"ints": [1]}}}, "attributes[ids] is a list"),
        ({"attributes": {"v": {"version": "1"}}}, "attributes[v] is no semantic version"),
        ({"attributes": {"n": {"int": "1"}}}, "attributes[n].int is of another type"),
        ({"attributes": {"n": {"real": 1.5}}}, "attributes[n] has no value that is known"),
        ({"capacity": {"memory": {}}}, "capacity[memory] has no value"),
        ({"colour": "red"}, "spec.devices[0].colour is not known"),
        ({"taints": [{"key": "k", "effect": "Never"}]}, "taints[0].effect Never is not known"),
        ({"taints": "all"}, 'taints: "all" is not valid; allowed: a list'),
    ],
)
def test_a_device_that_is_not_understood_says_why_for_itself(
    more: dict[str, Any], said: str
) -> None:
    found = resource_slice(decoded("s", slice_spec(gpu("odd", **more), gpu("even"))))
    odd, even = found.resource_slice.devices
    assert any(said in each for each in odd.unsupported), odd.unsupported
    assert even.unsupported == found.problems == ()


def test_a_device_whose_attributes_were_not_all_read_is_unsupported_to_every_selector() -> None:
    """Not an error, and not false: kube-scheduler may well read them."""
    odd = gpu("odd", attributes={"ids": {"ints": [1]}, "model": {"string": "H100"}})
    content = resource_slice(decoded("s", slice_spec(odd))).resource_slice.devices[0].content
    text = f'device.attributes["{GPU}"].model == "H100"'
    assert CelSelectors().evaluate(text, content) is Answer.UNSUPPORTED
    assert CelSelectors().fault(text, content) == "attributes[ids] is a list"
    assert CelSelectors().evaluate("1", content) is Answer.ERROR


def test_of_a_slice_that_is_not_understood_no_device_is() -> None:
    found = resource_slice(decoded("s", slice_spec(gpu("a"), reach="far")))
    assert found.problems == ("spec.reach is not known",)
    assert found.resource_slice.devices[0].unsupported == found.problems


def test_counters_and_binding_conditions_are_noted() -> None:
    half = {"memory": {"value": "20Gi"}, "engines": {"value": "1"}}
    counted = gpu("a", consumesCounters=[{"counterSet": "gpu-0", "counters": half}])
    bound = gpu("b", bindingConditions=["Attached"])
    spec = slice_spec(counted, bound, sharedCounters=[{"name": "gpu-0", "counters": half}])
    of = resource_slice(decoded("s", spec)).resource_slice
    taken = (CounterSet("gpu-0", (("engines", 1), ("memory", 20 * 2**30))),)
    assert of.shared_counters == taken
    assert [(d.consumes_counters, d.binding_conditions) for d in of.devices] == [
        (taken, False),
        ((), True),
    ]


@pytest.mark.parametrize("value", ["10E", "0.5", "much", None, True, {}])
def test_counters_that_kubernetes_may_miscount_leave_the_pool_open(value: object) -> None:
    """1.36 changes amounts beyond 64 bits as it counts."""
    sets = [{"name": "gpu-0", "counters": {"memory": {"value": value}}}]
    said = "spec.sharedCounters[0].counters[memory] is no whole number of 64 bits"
    of = resource_slice(decoded("s", slice_spec(sharedCounters=sets))).resource_slice
    assert said in of.unsupported
    consumed = [{"counterSet": "gpu-0", "counters": {"memory": {"value": value}}}]
    part = resource_slice(decoded("s", slice_spec(gpu("a", consumesCounters=consumed))))
    assert part.resource_slice.unsupported == ()
    assert any("is no whole number" in each for each in part.resource_slice.devices[0].unsupported)


def test_groups_leave_the_whole_pool_open() -> None:
    """1.37 leaves slices with them out, and so has the pool incomplete."""
    odd = gpu("odd", consumesCounters=[{"compatibilityGroups": ["a"]}])
    found = resource_slice(decoded("s", slice_spec(odd, gpu("even")))).resource_slice
    assert found.unsupported == ("compatibilityGroups",)


# ---- claims


def test_a_claim_is_read_whole() -> None:
    tolerated = {"key": "bad", "operator": "Exists", "effect": "NoSchedule"}
    wanted = request(count=2, selectors=[{"cel": {"expression": "true"}}], tolerations=[tolerated])
    either = {
        "name": "nic",
        "firstAvailable": [
            {"name": "fast", "deviceClassName": "fast.example.com", "allocationMode": "All"},
            {"name": "slow", "deviceClassName": "slow.example.com", "count": 3},
        ],
    }
    together = [{"matchAttribute": f"{GPU}/numa", "requests": ["gpu", "nic/fast"]}]
    spec = claim_spec(wanted, either, constraints=together, config=[{"opaque": {}}])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "uid-p", "controller": True}
    status = {**given("gpu-1", nodeSelector=NODE_IN_A), "reservedFor": [{"uid": "uid-p"}]}
    found = resource_claim(decoded("c", spec, status, ownerReferences=[owner]))
    assert found.key == ("team", "c")
    assert (found.uid, found.owner, found.reserved_for, found.deleted) == (
        *("uid-c", "uid-p", ("uid-p",)),
        False,
    )
    assert found.spec == ClaimSpec(
        requests=(
            Request(
                "gpu",
                DeviceRequest(
                    "gpu",
                    GPU,
                    ("true",),
                    count=2,
                    tolerations=(Toleration("bad", "Exists", "", "NoSchedule"),),
                ),
            ),
            Request(
                "nic",
                first_available=(
                    DeviceRequest("fast", "fast.example.com", mode=AllocationMode.ALL),
                    DeviceRequest("slow", "slow.example.com", count=3),
                ),
            ),
        ),
        constraints=(MatchAttribute(f"{GPU}/numa", ("gpu", "nic/fast")),),
    )
    device = AllocatedDevice("gpu", DeviceID(GPU, "node-1", "gpu-1"))
    assert found.allocation == Allocation((device,), IN_A)


def test_what_is_asked_of_a_shared_device_and_what_was_given_of_it_is_read() -> None:
    asked = request(capacity={"requests": {"memory": "1Gi", "cores": "500m"}})
    spec = claim_spec(asked, constraints=[{"distinctAttribute": f"{GPU}/numa"}])
    status = given("gpu-0", "gpu-1", "gpu-2")
    whole, some, odd = status["allocation"]["devices"]["results"]
    some |= {"shareID": "x", "consumedCapacity": {"memory": "2Gi"}}
    odd |= {"shareID": "y", "consumedCapacity": {"memory": "1n"}}
    found = resource_claim(decoded("c", spec, status))
    assert found.spec.constraints == (DistinctAttribute(f"{GPU}/numa"),)
    [wanted] = found.spec.requests[0].alternatives
    assert (wanted.capacity, wanted.unsupported) == ((("cores", 500), ("memory", 1000 * 2**30)), ())
    assert list(taken_of(found)) == [
        DeviceID(GPU, "node-1", whole["device"]),
        Share(GPU, "node-1", some["device"], "team/c/1", (("memory", 2000 * 2**30),)),
        DeviceID(GPU, "node-1", odd["device"]),
    ], "what is not counted is taken whole"


def test_capacities_are_read_with_their_policies() -> None:
    span = {"min": "1", "max": "9", "step": "2"}
    capacity = {
        "memory": {"value": "8", "requestPolicy": {"default": "1500m", "validValues": ["2", "3"]}},
        "cores": {"value": "9", "requestPolicy": {"default": "1", "validRange": span}},
        "plain": {"value": "1k"},
    }
    shared = gpu("a", allowMultipleAllocations=True) | {"capacity": capacity}
    of = resource_slice(decoded("s", slice_spec(shared, gpu("b")))).resource_slice
    assert [each.unsupported for each in of.devices] == [(), ()]
    assert of.devices[0].capacities == (
        Capacity("cores", 9000, RequestPolicy(1000, least=1000, most=9000, step=2000)),
        Capacity("memory", 8000, RequestPolicy(1500, (2000, 3000))),
        Capacity("plain", 1_000_000),
    )
    assert of.devices[1].capacities == (Capacity("memory", 80_000 * 2**30),)


@pytest.mark.parametrize(
    ("capacity", "said"),
    [
        ({"value": "1n"}, "value is not counted in thousandths"),
        ({"value": "-1"}, "negative capacity"),
        ({"value": "1", "requestPolicy": {"validRange": {"max": "1"}}}, "validRange has no min"),
        ({"value": "1", "requestPolicy": {"validValues": ["1n"]}}, "validValues is not counted"),
        ({"value": "1", "requestPolicy": {"validValues": ["2", "1"]}}, "is not valid"),
        ({"value": "1", "requestPolicy": {"unit": "1"}}, "requestPolicy.unit is not known"),
        (
            {"value": "1", "requestPolicy": {"validRange": {"min": "500m", "step": "1"}}},
            "validRange has steps that are no whole numbers",
        ),
    ],
)
def test_a_shared_device_whose_capacity_is_not_counted_says_why(
    capacity: dict[str, Any], said: str
) -> None:
    shared = gpu("a", allowMultipleAllocations=True) | {"capacity": {"memory": capacity}}
    [found] = resource_slice(decoded("s", slice_spec(shared))).resource_slice.devices
    assert any(said in each for each in found.unsupported), found.unsupported
    assert found.capacities is None, "it may suit a request, or not"


def test_a_template_reads_as_the_claims_that_are_made_of_it() -> None:
    spec = claim_spec(request())
    template = resource_claim_template(decoded("t", {"metadata": {}, "spec": spec}))
    assert template.spec == resource_claim(decoded("c", spec)).spec
    assert template.key == ("team", "t")


@pytest.mark.parametrize(
    ("exactly", "said"),
    [
        ({"adminAccess": True}, "adminAccess (ask for devices of your own instead)"),
        ({"capacity": {"requests": {"memory": "1n"}}}, "capacity is not counted in thousandths"),
        ({"capacity": {"shares": {}}}, "capacity.shares is not known"),
        (
            {"derivedAttributes": [{"name": "a/b"}]},
            "derivedAttributes (match an attribute of the devices instead)",
        ),
        ({"allocationMode": "Some"}, "allocationMode Some is not known"),
        ({"count": 0}, "count 0 is not positive"),
        ({"count": "two"}, 'count: "two" is not valid; allowed: an integer'),
        ({"share": 1}, "share is not known"),
        ({"selectors": [{"rego": {}}]}, "selectors[0].rego is not known"),
    ],
)
def test_a_request_that_is_not_understood_says_why(exactly: dict[str, Any], said: str) -> None:
    spec = resource_claim(decoded("c", claim_spec(request(**exactly)))).spec
    wanted = spec.requests[0].exactly
    assert wanted is not None
    assert any(said in each for each in wanted.unsupported), wanted.unsupported
    assert spec.unsupported == ()


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (claim_spec(request(), constraints=[{"near": 1}]), "constraints[0].near is not known"),
        (claim_spec({"name": "x"}), "requests[0] asks for nothing that is known"),
        (claim_spec(request(), sharing={}), "spec.devices.sharing is not known"),
        ({"devices": [1]}, 'spec.devices: "[1]" is not valid; allowed: an object'),
        (
            claim_spec(
                request(selectors=[{"cel": {"expression": "x" * 40_000}}] * 1),
                *[
                    request(str(n), selectors=[{"cel": {"expression": "x" * 30_000}}])
                    for n in range(2)
                ],
            ),
            "spec: selectors of more than 65536 bytes",
        ),
    ],
)
def test_a_claim_that_is_not_understood_says_why(spec: Any, said: str) -> None:
    found = resource_claim(decoded("c", spec)).spec
    assert any(said in each for each in found.unsupported), found.unsupported
    assert all(each.alternatives for each in found.requests)


def test_a_claim_keeps_its_devices_whatever_else_it_says() -> None:
    status = given("gpu-7")
    status["allocation"]["mood"] = "good"
    found = resource_claim(decoded("c", {"devices": 1}, status))
    assert found.allocation is not None
    assert found.allocation.devices[0].device == DeviceID(GPU, "node-1", "gpu-7")


# ---- classes


def test_a_resource_is_of_the_newest_class_and_a_class_without_rivals_has_its_own() -> None:
    """kube-scheduler knows the older ones by their own names only if it saw them first."""

    def made(name: str, second: int, resource: str = "example.com/gpu") -> Any:
        stamp = f"2026-01-01T00:00:0{second}Z"
        spec = {"extendedResourceName": resource} if resource else {}
        return device_class(decoded(name, spec, creationTimestamp=stamp))

    classes = [made("old", 1), made("b", 2), made("a", 2), made("other", 1, "")]
    prefix = "deviceclass.resource.kubernetes.io/"
    assert classes_of_resources(classes) == {
        "example.com/gpu": "a",
        f"{prefix}a": "a",
        f"{prefix}other": "other",
    }


def test_no_device_is_of_a_class_that_is_not_understood() -> None:
    selector = {"cel": {"expression": "true"}}
    plain = device_class(decoded("c", {"selectors": [selector], "config": []})).device_class
    odd = device_class(decoded("c", {"selectors": [selector], "kind": "x"})).device_class
    content = resource_slice(decoded("s", slice_spec(gpu("a")))).resource_slice.devices[0].content

    def answers(selectors: tuple[str, ...]) -> list[Answer]:
        return [CelSelectors().evaluate(each, content) for each in selectors]

    assert answers(plain.selectors) == [Answer.MATCHES]
    assert answers(odd.selectors) == [Answer.UNSUPPORTED, Answer.MATCHES]


# ---- rules


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, []),
        ({}, ["a", "b"]),
        ({"driver": GPU}, ["a", "b"]),
        ({"driver": "other.example.com"}, []),
        ({"pool": "node-1", "device": "b"}, ["b"]),
        ({"pool": "node-2"}, []),
        ({"device": "c"}, []),
    ],
)
def test_a_rule_taints_what_it_selects(
    selector: dict[str, str] | None, selected: list[str]
) -> None:
    spec = {"taint": {"key": "rule", "effect": "NoExecute"}}
    if selector is not None:
        spec["deviceSelector"] = selector
    before = resource_slice(decoded("s", slice_spec(gpu("a", taints=[BAD]), gpu("b"))))
    of = before.resource_slice
    after = tainted(of, [device_taint_rule(decoded("r", spec))])
    added = Taint("rule", "", "NoExecute")
    assert [d.name for d in after.devices if added in d.taints] == selected
    assert after.devices[0].taints[0].key == "bad"
    assert (after is of) == (selected == [])


def test_what_a_rule_selects_is_not_understood_where_the_rule_is_not() -> None:
    rule = device_taint_rule(
        decoded("r", {"deviceSelector": {"pool": "node-1", "rack": 1}, "taint": {"effect": "Odd"}})
    )
    of = resource_slice(decoded("s", slice_spec(gpu("a")))).resource_slice
    [found] = tainted(of, [rule]).devices
    assert found.taints == (), "it may not select the device"
    assert found.unsupported == (
        "DeviceTaintRule r: spec.deviceSelector.rack is not known",
        "DeviceTaintRule r: spec.taint.effect Odd is not known",
    )


# ---- junk

WORDS = (
    "driver pool devices name attributes capacity string int version taints key effect devices "
    "requests exactly firstAvailable selectors cel expression count constraints matchAttribute "
    "distinctAttribute allowMultipleAllocations requestPolicy default validValues validRange min "
    "max step value shareID consumedCapacity "
    "allocation results nodeSelector nodeSelectorTerms taint deviceSelector spec value"
)
KEYS = st.sampled_from(WORDS.split())
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@draws(JUNK, JUNK)
def test_no_object_raises(spec: Any, status: Any) -> None:
    found = DeviceObject(spec=spec, status=status)
    claim, template = resource_claim(found), resource_claim_template(found)
    hash(claim.spec), hash(template.spec), hash(device_class(found).device_class)
    of = resource_slice(found).resource_slice
    assert all(isinstance(each.name, str) for each in of.devices)
    tainted(of, [device_taint_rule(found)])


@draws(st.dictionaries(KEYS, JUNK, max_size=4))
def test_a_bad_field_is_named_or_unread(exactly: dict[str, Any]) -> None:
    """What is not a field of a request never passes in silence."""
    found = DeviceObject(spec=claim_spec({"name": "r", "exactly": exactly}))
    spec = resource_claim(found).spec
    known = {"name", "selectors", "count"} | (
        {"capacity"} if exactly.get("capacity") == {} else set()
    )
    unknown = {k for k, v in exactly.items() if v is not None} - known
    wanted = spec.requests[0].exactly
    if unknown and wanted is not None:
        assert wanted.unsupported != ()

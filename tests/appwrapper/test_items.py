"""The items of an AppWrapper are read in their order, and all that is wrong is said at once."""

import msgspec
import pytest

from appwrapper.spec.faults import (
    MOST_BYTES,
    MOST_DEPTH,
    MOST_ITEMS,
    MOST_PODS,
    Fault,
    message_of,
)
from appwrapper.spec.items import read
from appwrapper.spec.wrapped import Generation
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
    said,
    sizes,
    wrapper,
)


def test_items_of_both_generations_are_read_in_their_order() -> None:
    made_of = [config_map(), deployment(), job()]
    for generation, found in (
        (Generation.CODEFLARE, codeflare(*made_of)),
        (Generation.MCAD, mcad(*(mcad_item(each) for each in made_of))),
    ):
        wrapped = fine(found)
        assert wrapped.generation is generation
        assert [each.kind for each in wrapped.items] == ["ConfigMap", "Deployment", "Job"]
        assert [each.found for each in wrapped.items] == made_of


def test_the_terms_of_mcad_are_read() -> None:
    requeuing = {"timeInSeconds": 60, "growthType": "linear", "maxNumRequeuings": 3}
    scheduling = {"minAvailable": 2, "requeuing": requeuing, "dispatchDuration": {"limit": 10}}
    item = mcad_item(deployment(), completionstatus="Available", priority=3, allocated=0)
    wrapped = fine(mcad(item, priority=9, priorityslope=0.5, schedulingSpec=scheduling))
    assert (wrapped.spec.priority, wrapped.spec.priority_slope) == (9, 0.5)
    assert wrapped.scheduling.min_available == 2
    assert wrapped.scheduling.requeuing is not None
    assert wrapped.scheduling.requeuing.growth_type == "linear"
    assert wrapped.scheduling.dispatch_duration is not None
    assert wrapped.scheduling.dispatch_duration.limit == 10
    assert wrapped.items[0].completion == "Available"


def test_the_terms_of_codeflare_are_read() -> None:
    wrapped = fine(codeflare(deployment(), suspend=True, managedBy=names.MANAGED_BY))
    assert (wrapped.spec.suspend, wrapped.spec.managed_by) == (True, "muster.dev/app-wrapper")


@pytest.mark.parametrize("spec", [{}, {"components": []}, {"resources": {"GenericItems": []}}])
def test_an_app_wrapper_may_be_empty(spec: Json) -> None:
    assert fine(wrapper(spec)).items == ()


def test_both_generations_in_one_are_refused() -> None:
    (message, *_rest) = said(wrapper({"components": [], "resources": {"GenericItems": []}}))
    allowed = "spec.components, or spec.resources.GenericItems"
    assert message == f'spec: "both of them" is not valid; allowed: {allowed}'


@pytest.mark.parametrize(
    ("change", "field", "allowed"),
    [
        ({"apiVersion": None}, "apiVersion", "VERSION, or GROUP/VERSION"),
        ({"apiVersion": "a/b/c"}, "apiVersion", "VERSION, or GROUP/VERSION"),
        ({"apiVersion": "/v1"}, "apiVersion", "VERSION, or GROUP/VERSION"),
        ({"kind": ""}, "kind", "the kind of an object"),
        ({"kind": 7}, "kind", "the kind of an object"),
        ({"metadata": {}}, "metadata.name", "a name of 1 to 253 characters"),
        ({"metadata": None}, "metadata.name", "a name of 1 to 253 characters"),
        ({"metadata": {"name": "x" * 254}}, "metadata.name", "a name of 1 to 253 characters"),
        (
            {"metadata": {"name": "web", "namespace": "other"}},
            "metadata.namespace",
            "ns, where the AppWrapper is, or none",
        ),
        ({"kind": "AppWrapper"}, "kind", "any kind but AppWrapper"),
        ({"kind": "Node", "apiVersion": "v1"}, "kind", "a kind whose objects are in a namespace"),
        ({"kind": "Binding", "apiVersion": "v1"}, "kind", "a kind that neither binds nor evicts"),
        ({"kind": "Gang", "apiVersion": "muster.dev/v1alpha1"}, "kind", "a kind that neither"),
    ],
)
def test_what_an_item_is_called_is_checked(change: Json, field: str, allowed: str) -> None:
    (message,) = said(codeflare({**deployment(), **change}))
    assert f": template.{field}: " in message
    assert f" is not valid; allowed: {allowed}" in message


def test_fields_are_spelt_as_their_generation_does() -> None:
    (message,) = said(mcad(mcad_item({**deployment(), "kind": "AppWrapper"})))
    where = "spec.resources.GenericItems[0] (AppWrapper web)"
    assert message.startswith(f'{where}: generictemplate.kind: "AppWrapper" is not valid')


def test_all_faults_are_said_at_once() -> None:
    """Each with the item that it is in."""
    messages = said(codeflare(deployment(replicas=-1), 7, {**config_map(), "kind": None}))
    assert [each.partition(":")[0] for each in messages] == [
        "spec.components[0] (Deployment web)",
        "spec.components[1]",
        "spec.components[2] (settings)",
    ]


def test_two_items_of_one_kind_and_name_are_refused() -> None:
    """Also of two versions of the kind; of two kinds they are two objects."""
    beta = {**deployment(), "apiVersion": "apps/v1beta1"}
    (message,) = said(codeflare(deployment(), job("web"), beta))
    assert message == (
        'spec.components[2] (Deployment web): template.metadata.name: "web" is not valid; allowed: '
        "a name that no other Deployment has; it is that of spec.components[0] (Deployment web)"
    )


@pytest.mark.parametrize(
    ("item", "field", "allowed"),
    [
        ({"replicas": -1}, "replicas", "a whole number from 0 to"),
        ({"replicas": 10**9}, "replicas", "a whole number from 0 to"),
        ({"replicas": "many"}, "replicas", "a whole number"),
        ({"completionstatus": 7}, "completionstatus", "a text"),
        ({"custompodresources": 7}, "custompodresources", "a list"),
        ({"custompodresources": [{"replicas": -1}]}, "custompodresources[0].replicas", "a whole"),
    ],
)
def test_fields_of_an_item_of_mcad_are_checked(item: Json, field: str, allowed: str) -> None:
    (message,) = said(mcad(mcad_item(config_map(), **item)))
    where = "spec.resources.GenericItems[0] (ConfigMap settings)"
    assert message.startswith(f"{where}: {field}: ")
    assert f"is not valid; allowed: {allowed}" in message


def test_replicas_of_an_item_of_mcad_create_one_object() -> None:
    """As they do with MCAD, which does not read them either; the status says so."""
    wrapped = fine(mcad(mcad_item(deployment(), replicas=3)))
    assert [each.count for each in wrapped.items[0].pod_sets] == [2]
    assert wrapped.notices == (
        "spec.resources.GenericItems[0] (Deployment web): replicas: 3: one object is created",
    )


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"priority": 2**31}, "spec.priority"),
        ({"priority": "high"}, "spec.priority"),
        ({"suspend": "yes"}, "spec.suspend"),
        ({"schedulingSpec": {"minAvailable": -1}}, "spec.schedulingSpec.minAvailable"),
        (
            {"schedulingSpec": {"requeuing": {"timeInSeconds": -1}}},
            "spec.schedulingSpec.requeuing.timeInSeconds",
        ),
        (
            {"schedulingSpec": {"dispatchDuration": {"limit": "soon"}}},
            "spec.schedulingSpec.dispatchDuration.limit",
        ),
    ],
)
def test_terms_that_cannot_be_used_are_named(spec: Json, field: str) -> None:
    (message,) = said(codeflare(config_map(), **spec))
    assert message.startswith(f"{field}: ")


def test_the_pods_of_all_items_are_bounded() -> None:
    many = [deployment(f"web-{n}", replicas=MOST_PODS // 2) for n in range(3)]
    assert said(codeflare(*many)) == [
        f'spec: "{MOST_PODS // 2 * 3} pods" is not valid; allowed: at most {MOST_PODS} of all items'
    ]
    assert said(codeflare(*many[:2])) == []


@pytest.mark.parametrize("beyond", [0, 1, 9_000])
def test_what_nests_too_deeply_is_refused(beyond: int) -> None:
    around = 4  # the spec, its list of components, the component, its template
    levels = MOST_DEPTH - around + beyond
    spec = b'{"components":[{"template":{"apiVersion":"v1","kind":"ConfigMap",'
    spec += b'"metadata":{"name":"a"},"deep":' + b"[" * levels + b"]" * levels + b"}}]}"
    wrapped = read(AppWrapper(spec=msgspec.Raw(spec)))
    refused = f'spec: "nested too deeply" is not valid; allowed: at most {MOST_DEPTH} lists'
    assert message_of(wrapped.faults).startswith(refused if beyond else "")
    assert bool(wrapped.faults) == bool(beyond)


def test_too_many_bytes_or_items_are_refused_before_they_are_read() -> None:
    large = obj("v1", "ConfigMap", "large", data={"a": "x" * MOST_BYTES})
    (message,) = said(codeflare(large))
    assert message.endswith(f"allowed: at most {MOST_BYTES} bytes")
    (message,) = said(codeflare(*[config_map()] * (MOST_ITEMS + 1)))
    assert message == (
        f'spec.components: "{MOST_ITEMS + 1} entries" is not valid; allowed: a list of at most '
        f"{MOST_ITEMS}"
    )


def test_a_long_name_and_keys_of_muster_on_the_app_wrapper_are_refused() -> None:
    (message,) = said(wrapper({"components": []}, "x" * 64))
    assert message.startswith("metadata.name: ")
    assert message.endswith("allowed: at most 63 characters: it is written into labels")
    keys = {names.HELD: "true", names.MIN_REPLICAS: "web=1", names.CREATED_BY: "{}"}
    (message,) = said(wrapper({"components": []}, metadata={"annotations": keys}))
    assert message.startswith(f'metadata: "{names.HELD}" is not valid')


@pytest.mark.parametrize(
    ("asked", "minimums"),
    [(None, [2, 3]), (0, [2, 3]), (1, [1, 0]), (4, [2, 2]), (5, [2, 3]), (9, [2, 3])],
)
def test_the_least_available_pods_are_those_of_the_first_items(
    asked: int | None, minimums: list[int]
) -> None:
    items = [mcad_item(each) for each in (deployment(), deployment("other", 3))]
    wrapped = fine(mcad(*items, schedulingSpec={"minAvailable": asked}))
    found = [each.minimum for item in wrapped.items for each in item.pod_sets]
    assert found == minimums
    above = ("schedulingSpec.minAvailable: 9: the items have 5 pods",)
    assert wrapped.notices == (above if asked == 9 else ())


def test_sizes_are_bounded_in_number() -> None:
    many = sizes((1, 1)) * 1001
    message = said(mcad(mcad_item(obj("example.org/v1", "T", "t"), custompodresources=many)))[0]
    assert message.endswith(
        'custompodresources: "1001 entries" is not valid; allowed: at most 1000'
    )


def test_a_bad_grace_of_codeflare_is_told_and_its_default_counts() -> None:
    key = "workload.codeflare.dev.appwrapper/retryLimit"
    found = wrapper({"components": []}, metadata={"annotations": {key: "often"}})
    assert fine(found).notices == (
        f'metadata.annotations[{key}]: "often" is not valid; allowed: a whole number from 0 on',
    )


def test_messages_are_bounded() -> None:
    """A value is cut, and of many faults the first few are shown and the rest counted."""
    fault = Fault("item", "field", "x" * 1000, "less")
    assert len(fault.message) < 200
    assert message_of([fault] * 7).endswith("; and 2 more")
    assert message_of([]) == ""


def test_one_path_for_a_pod_set_that_is_no_list() -> None:
    (message,) = said(component(deployment(), podSets={"path": "x"}))
    assert message.endswith("is not valid; allowed: a list")
    assert read(component(deployment(), podSets=None)).faults == ()

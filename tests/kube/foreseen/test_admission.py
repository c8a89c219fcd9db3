"""What a stock API server changes of a pod is foreseen, and why it refuses one."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.codec.pod import pod_shape
from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen, foreseen_gang
from kube.objects.core import Pod
from kube.objects.pod_templates import TemplateToleration
from tests.kube.foreseen.clusters import (
    Json,
    cluster,
    container,
    foreseen,
    group,
    pod_set,
    priority_class,
    refusal,
    runtime,
    template,
    worker,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"


def test_limits_stand_for_requests_that_are_absent() -> None:
    half = container({"limits": {"cpu": "3", "memory": "2Gi"}, "requests": {"cpu": "1"}})
    side = container({"limits": {"cpu": "2"}}, "side", restartPolicy="Always")
    found = worker(template(half, initContainers=[side])).amounts
    assert found == {"cpu": 3000, "memory": 2 * 2**30, "pods": 1}


@pytest.mark.parametrize(
    ("whole", "cpu"),
    [
        ({"requests": {"cpu": "5"}}, 5000),
        ({"limits": {"cpu": "5"}}, 1000),
        ({"limits": {"memory": "5Gi"}}, 1000),
        ({"limits": {"cpu": "5"}, "requests": {"cpu": "4"}}, 4000),
    ],
)
def test_what_is_said_for_the_pod_as_a_whole_counts(whole: Json, cpu: int) -> None:
    """With limits only, the pod asks for what its containers ask for, where they do."""
    assert worker(template(resources=whole)).amounts["cpu"] == cpu


def test_limits_of_the_pod_stand_for_requests_that_no_container_has() -> None:
    silent = container({"requests": {"cpu": "1"}})
    found = foreseen(head=template(silent, resources={"limits": {"memory": "3Gi"}}))
    asked = pod_set("headgroup", found).pod.spec.resources
    assert asked is not None
    assert asked.requests == {"cpu": "1000m", "memory": "3Gi"}


# ---- RuntimeClass


def test_a_runtime_adds_its_overhead_and_its_terms() -> None:
    added = {"nodeSelector": {"a": "1"}, "tolerations": [{"key": "k", "operator": "Exists"}]}
    classes = runtime(overhead={"podFixed": {"cpu": "250m"}}, scheduling=added)
    made = template(runtimeClassName="sandbox", nodeSelector={"b": "2"})
    found = worker(made, Admission(runtime_classes=classes))
    assert found.amounts["cpu"] == 1250
    assert found.node_selector == (("a", "1"), ("b", "2"))
    assert [each.key for each in found.tolerations] == [NOT_READY, UNREACHABLE, "k"]
    assert worker(template(), Admission(runtime_classes=classes)).amounts["cpu"] == 1000


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"runtimeClassName": "other"}, 'runtimeClassName: there is no RuntimeClass "other"'),
        ({"overhead": {"cpu": "1"}}, "overhead: allowed is what the RuntimeClass says, or none"),
        ({"runtimeClassName": "sandbox", "overhead": {"cpu": "1"}}, "overhead: allowed is what"),
        (
            {"runtimeClassName": "sandbox", "nodeSelector": {"a": "2"}},
            'nodeSelector[a]: "2" is not valid; allowed: "1", as the RuntimeClass has it',
        ),
    ],
)
def test_what_contradicts_the_runtime_is_refused(spec: Json, said: str) -> None:
    classes = runtime(overhead={"podFixed": {"cpu": "2"}}, scheduling={"nodeSelector": {"a": "1"}})
    assert said in refusal(template(**spec), Admission(runtime_classes=classes))


def test_the_same_overhead_spelled_otherwise_is_no_contradiction() -> None:
    classes = runtime(overhead={"podFixed": {"cpu": "2"}})
    made = template(runtimeClassName="sandbox", overhead={"cpu": "2000m"})
    assert worker(made, Admission(runtime_classes=classes)).amounts["cpu"] == 3000


# ---- PriorityClass


def test_priority_comes_from_the_class_or_from_the_default_one() -> None:
    classes = {**priority_class("high", 9), **priority_class("usual", 3, usual=True)}
    by = Admission(priority_classes=classes)
    chosen = {"a": template(), "b": template(priorityClassName="high")}
    found = foreseen(*(group(made_of=made, groupName=n) for n, made in chosen.items()), by=by)
    said = {each.name: each.pod.spec for each in found.pod_sets}
    assert (said["a"].priority, said["a"].priority_class_name) == (3, "usual")
    assert (said["b"].priority, said["b"].priority_class_name) == (9, "high")


def test_of_several_default_classes_the_lowest_counts() -> None:
    classes = {**priority_class("x", 9, usual=True), **priority_class("y", -2, usual=True)}
    found = foreseen(by=Admission(priority_classes=classes))
    assert pod_set("headgroup", found).pod.spec.priority == -2


def test_without_any_class_priority_is_zero() -> None:
    assert pod_set("headgroup", foreseen()).pod.spec.priority == 0


def test_a_class_that_does_not_exist_and_a_priority_of_ones_own_are_refused() -> None:
    assert 'there is no PriorityClass "none"' in refusal(template(priorityClassName="none"))
    assert "priority: 5 is not valid; allowed: 0" in refusal(template(priority=5))


# ---- tolerations


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ({"key": "x", "operator": "Exists"}, [NOT_READY, UNREACHABLE]),
        ({"operator": "Exists"}, []),
        ({"operator": "Exists", "effect": "NoExecute"}, []),
        ({"operator": "Exists", "effect": "NoSchedule"}, [NOT_READY, UNREACHABLE]),
        ({"key": NOT_READY, "operator": "Exists", "effect": "NoExecute"}, [UNREACHABLE]),
        ({"key": UNREACHABLE, "value": "x"}, [NOT_READY]),
    ],
)
def test_pods_tolerate_a_node_that_is_lost_unless_they_say_otherwise(own: Json, added: Any) -> None:
    first, *others = worker(template(tolerations=[own])).tolerations
    assert first.key == own.get("key", "")
    assert [(each.key, each.effect) for each in others] == [(key, "NoExecute") for key in added]


ALL, KEY = {"operator": "Exists"}, {"key": "k", "operator": "Exists"}
SHORT = {**KEY, "effect": "NoExecute", "tolerationSeconds": 5}
LONG = {**SHORT, "tolerationSeconds": 50}
EVER = {**KEY, "effect": "NoExecute"}
OTHER = {"key": "other", "operator": "Exists"}
PLAIN, EQUAL = {"key": "k", "value": "v"}, {"key": "k", "operator": "Equal", "value": "v"}
LATER = {**KEY, "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("own", "added", "kept"),
    [
        (KEY, KEY, [KEY]),
        (ALL, KEY, [ALL]),
        (KEY, ALL, [ALL]),
        (SHORT, LONG, [LONG]),
        (LONG, SHORT, [LONG]),
        (SHORT, EVER, [EVER]),
        (EVER, SHORT, [EVER]),
        (KEY, OTHER, [KEY, OTHER]),
        (PLAIN, EQUAL, [PLAIN]),
        (EQUAL, PLAIN, [PLAIN]),
        (PLAIN, KEY, [KEY]),
        (KEY, PLAIN, [KEY]),
        ({**PLAIN, "value": "w"}, EQUAL, [{**PLAIN, "value": "w"}, EQUAL]),
        (LATER, SHORT, [LATER, SHORT]),
    ],
)
def test_tolerations_of_a_runtime_that_are_covered_are_left_out(
    own: Json, added: Json, kept: list[Json]
) -> None:
    """The wider of two stays; an empty operator means Equal, and only on its own side is wider."""
    by = Admission(runtime_classes=runtime(scheduling={"tolerations": [added]}))
    lost = [{"key": key, "effect": "NoExecute"} for key in (NOT_READY, UNREACHABLE)]
    made = template(runtimeClassName="sandbox", tolerations=[own, *lost])
    spec = pod_set("headgroup", foreseen(head=made, by=by)).pod.spec
    others = [each for each in spec.tolerations if each.key not in (NOT_READY, UNREACHABLE)]
    assert others == msgspec.convert(kept, list[TemplateToleration])


# ---- keys to match


def test_label_keys_are_merged_into_selectors_with_the_pods_own_values() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "x"}},
        "matchLabelKeys": ["team", "absent"],
        "mismatchLabelKeys": ["ray.io/cluster"],
    }
    made = template(labels={"team": "a"}, affinity={"podAntiAffinity": {REQUIRED: [term]}})
    (found,) = worker(made).anti_affinity
    said = [(each.key, each.operator, each.values) for each in found.selector]
    assert said == [
        ("app", "In", ("x",)),
        ("team", "In", ("a",)),
        ("ray.io/cluster", "NotIn", ("rc",)),
    ]


def test_without_a_selector_there_is_nothing_to_merge_into() -> None:
    term = {"topologyKey": "zone", "matchLabelKeys": ["team"]}
    made = template(labels={"team": "a"}, affinity={"podAffinity": {REQUIRED: [term]}})
    bare = template(affinity={"podAffinity": {REQUIRED: [{"topologyKey": "zone"}]}})
    assert worker(made).affinity == worker(bare).affinity


# ---- all together

AMOUNTS = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.sampled_from(["0", "1m", "250m", "3", 2, 1.5]),
        "memory": st.sampled_from(["1", "64Mi", "1Gi"]),
        "nvidia.com/gpu": st.sampled_from(["1", 8]),
    },
)
CONTAINERS = st.builds(
    lambda asked, side: {"name": "c", "resources": {"requests": asked}, "restartPolicy": side},
    AMOUNTS,
    st.sampled_from(["Always", None]),
)


@given(st.lists(CONTAINERS, min_size=1, max_size=3), st.lists(CONTAINERS, max_size=3), AMOUNTS)
def test_a_head_that_admission_leaves_alone_has_the_shape_of_its_template(
    containers: list[Json], first: list[Json], whole: Json
) -> None:
    """What is said for the pod as a whole has no limits here, and so changes nothing else."""
    lost = [{"key": key, "effect": "NoExecute"} for key in (NOT_READY, UNREACHABLE)]
    for each in containers:
        each.pop("restartPolicy")
    spec = {"containers": containers, "initContainers": first, "tolerations": lost}
    plain = {**spec, "resources": {"requests": whole}}
    outlook = foreseen_gang(cluster(head={"spec": plain}), Admission())
    assert isinstance(outlook, Foreseen)
    expected = pod_shape(msgspec.convert({"spec": plain}, Pod))
    assert pod_shape(pod_set("headgroup", outlook).pod) == expected

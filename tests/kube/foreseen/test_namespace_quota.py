"""ResourceQuotas are judged for all pods of a gang together, as the API server counts them."""

from collections.abc import Mapping
from typing import Any

import pytest

from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen
from kube.foreseen.namespace_quota import (
    Bound,
    QuotaShortage,
    QuotaUnmet,
    bounds_of,
    charges_of,
    counted,
    exceeded,
    namespace_quota,
)
from kube.objects.admission import ResourceQuota
from tests.kube.foreseen.clusters import (
    Json,
    container,
    foreseen,
    group,
    priority_class,
    read,
    runtime,
    template,
)

BOTH = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}


def quota(hard: Json, used: Json | None = None, name: str = "q", **spec: Any) -> ResourceQuota:
    """A quota of which nothing is used unless it says what is."""
    none = dict.fromkeys(hard, "0")
    status = {"hard": hard, "used": {**none, **(used or {})}}
    raw = {"metadata": {"name": name}, "spec": {"hard": hard, **spec}, "status": status}
    return read(raw, ResourceQuota)


def gang(replicas: int = 4, asked: Json = BOTH, **spec: Any) -> Foreseen:
    """A head and workers that all ask for the same."""
    made = template(container(asked), **spec)
    return foreseen(group(replicas, made), head=made)


def messages(found: Foreseen, *quotas: ResourceQuota) -> list[str]:
    return [each.message for each in namespace_quota(found, quotas)]


def test_what_is_short_is_said_in_numbers() -> None:
    short = quota({"requests.cpu": "12"}, {"requests.cpu": "8"}, name="compute")
    (found,) = namespace_quota(gang(), [short])
    assert found == QuotaShortage("compute", "requests.cpu", 5000, 12000, 8000)
    said = "ResourceQuota compute: the gang needs 5000m of requests.cpu; 4000m of 12000m are left"
    assert found.message == said


@pytest.mark.parametrize(
    ("resource", "enough", "short"),
    [
        ("pods", "5", "4"),
        ("count/pods", "5", "4"),
        ("cpu", "5", "4999m"),
        ("requests.cpu", "5", "4999m"),
        ("limits.cpu", "10", "9999m"),
        ("memory", "5Gi", "5368709119"),
        ("requests.memory", "5Gi", "4Gi"),
        ("limits.memory", "5Gi", "4Gi"),
    ],
)
def test_all_pods_count_together(resource: str, enough: str, short: str) -> None:
    """One worker more than there is room for, and nothing is created."""
    assert messages(gang(), quota({resource: enough})) == []
    (said,) = messages(gang(), quota({resource: short}))
    assert f"of {resource}; " in said


def test_devices_and_local_storage_count_too() -> None:
    asked = {"nvidia.com/gpu": "8", "ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}
    all_of_it = {"requests": asked, "limits": asked}
    hard = {
        "requests.nvidia.com/gpu": "39",
        "ephemeral-storage": "4Gi",
        "limits.ephemeral-storage": "4Gi",
        "hugepages-2Mi": "19Mi",
        "requests.hugepages-2Mi": "19Mi",
    }
    short = [each.resource for each in shortages(gang(4, all_of_it), quota(hard))]
    assert short == sorted(hard)


def shortages(found: Foreseen, *quotas: ResourceQuota) -> list[QuotaShortage]:
    return [each for each in namespace_quota(found, quotas) if isinstance(each, QuotaShortage)]


def test_what_a_quota_does_not_count_is_free() -> None:
    assert messages(gang(), quota({"services": "0", "requests.storage": "0"})) == []
    assert messages(gang()) == []


def test_overhead_counts_for_limits_only_where_there_are_any() -> None:
    by = Admission(runtime_classes=runtime(overhead={"podFixed": {"cpu": "1", "memory": "1Gi"}}))
    made = template(container({"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}))
    made["spec"]["runtimeClassName"] = "sandbox"
    found = foreseen(head=made, by=by)
    assert [
        (each.resource, each.needed)
        for each in shortages(found, quota(dict.fromkeys(("cpu", "limits.cpu"), "0")))
    ] == [("cpu", 2000), ("limits.cpu", 3000)]
    assert shortages(found, quota({"limits.memory": "0"})) == []


def test_a_quota_of_cpu_or_memory_wants_every_container_to_say_so() -> None:
    silent = gang(1, {"requests": {"cpu": "1"}})
    said = messages(silent, quota({"limits.cpu": "99", "requests.cpu": "99"}))
    assert said == [
        "ResourceQuota q: container ray of headgroup must say limits.cpu, which the quota counts",
        "ResourceQuota q: container ray of workers must say limits.cpu, which the quota counts",
    ]
    whole = gang(1, {"requests": {"cpu": "1"}}, resources={"limits": {"cpu": "2"}})
    assert messages(whole, quota({"limits.cpu": "99"})) == []


def test_a_status_that_is_behind_is_waited_for() -> None:
    raw = {"metadata": {"name": "new"}, "spec": {"hard": {"pods": "99"}}}
    (found,) = namespace_quota(gang(), [read(raw, ResourceQuota)])
    said = "ResourceQuota new: its status does not say yet how much pods is used"
    assert found == QuotaUnmet("new", said)


@pytest.mark.parametrize(("spec", "status"), [("4", "9"), ("9", "4")])
def test_of_two_bounds_the_lower_counts_while_the_status_is_behind(spec: str, status: str) -> None:
    raw = {
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": spec}},
        "status": {"hard": {"pods": status}, "used": {"pods": "0"}},
    }
    assert namespace_quota(gang(), [read(raw, ResourceQuota)])


def test_a_bound_beyond_64_bits_is_none() -> None:
    assert messages(gang(), quota({"memory": "100E"}, {"memory": "1"})) == []
    assert messages(gang(), quota({"memory": "1E"}, {"memory": "100E"})) != []


def test_of_several_quotas_each_says_what_is_short() -> None:
    found = shortages(gang(), quota({"pods": "1"}, name="b"), quota({"pods": "0"}, name="a"))
    assert [each.quota for each in found] == ["a", "b"]


# ---- scopes


def selects(operator: str, *values: str) -> Json:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": [*values]}
    return {"scopeSelector": {"matchExpressions": [expression]}}


@pytest.mark.parametrize(
    ("scopes", "applies"),
    [
        ({"scopes": ["NotTerminating"]}, True),
        ({"scopes": ["Terminating"]}, False),
        ({"scopes": ["NotBestEffort"]}, True),
        ({"scopes": ["BestEffort"]}, False),
        ({"scopes": ["NotBestEffort", "Terminating"]}, False),
        ({"scopes": ["PriorityClass"]}, True),
        (selects("In", "high", "other"), True),
        (selects("In", "other"), False),
        (selects("NotIn", "other"), True),
        (selects("NotIn", "high"), False),
        (selects("Exists"), True),
        (selects("DoesNotExist"), False),
        ({"scopes": ["CrossNamespacePodAffinity"]}, False),
        ({"scopes": ["OfALaterRelease"]}, False),
        (selects("OfALaterRelease"), False),
    ],
)
def test_a_quota_counts_the_pods_of_its_scopes(scopes: Json, applies: bool) -> None:
    """A scope that is not known counts as one for no pods."""
    by = Admission(priority_classes=priority_class("high", 9))
    found = foreseen(head=template(container(BOTH), priorityClassName="high"), by=by)
    assert bool(messages(found, quota({"pods": "0"}, **scopes))) is applies


def test_pods_without_a_class_are_in_no_class() -> None:
    hard: Mapping[str, str] = {"pods": "0"}
    assert messages(gang(), quota(dict(hard), **selects("Exists"))) == []
    assert messages(gang(), quota(dict(hard), **selects("In", ""))) == []
    assert messages(gang(), quota(dict(hard), **selects("NotIn", "x"))) != []


def test_best_effort_and_terminating_pods_have_scopes_of_their_own() -> None:
    devices = {"limits": {"nvidia.com/gpu": "1"}}
    head = foreseen(head=template(container(devices), activeDeadlineSeconds=60))
    for scope in ("BestEffort", "Terminating"):
        assert messages(head, quota({"pods": "0"}, scopes=[scope]))
        assert messages(head, quota({"pods": "0"}, scopes=[f"Not{scope}"])) == []


def test_of_a_gang_only_the_pods_of_the_scope_count() -> None:
    by = Admission(priority_classes=priority_class("high", 9))
    workers = group(3, template(container(BOTH), priorityClassName="high"))
    found = foreseen(workers, head=template(container(BOTH)), by=by)
    (short,) = shortages(found, quota({"pods": "1"}, **selects("In", "high")))
    assert short.needed == 3


ELSEWHERE: list[Json] = [{"namespaces": ["other"]}, {"namespaceSelector": {}}]


@pytest.mark.parametrize("said", ELSEWHERE)
@pytest.mark.parametrize("side", ["podAffinity", "podAntiAffinity"])
def test_terms_about_other_namespaces_have_a_scope_of_their_own(side: str, said: Json) -> None:
    """The quota of the Kubernetes documentation against them concerns no other pods."""
    term = {"topologyKey": "zone", "labelSelector": {}}
    none = quota({"pods": "0"}, scopes=["CrossNamespacePodAffinity"])
    wished, required = (
        f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("preferred", "required")
    )
    for field, terms in (
        (required, [{**term, **said}]),
        (wished, [{"weight": 1, "podAffinityTerm": {**term, **said}}]),
    ):
        assert messages(gang(affinity={side: {field: terms}}), none), field
    assert messages(gang(affinity={side: {required: [term]}}), none) == []


def test_what_others_claim_counts_in_the_quotas_of_their_scopes_alone() -> None:
    claimed = charges_of(gang(1))
    assert messages(gang(1), quota({"pods": "3"})) == []
    said = namespace_quota(gang(1), [quota({"pods": "3"})], claimed)
    assert said == (QuotaShortage("q", "pods", 4, 3, 0),)
    assert namespace_quota(gang(1), [quota({"pods": "4"})], claimed) == ()
    best_effort = quota({"pods": "2"}, scopes=["BestEffort"])
    assert namespace_quota(gang(1, asked={}), [best_effort], claimed) == ()


def test_charges_are_counted_by_the_quotas_that_apply_and_what_they_bound() -> None:
    quotas = [
        quota({"requests.cpu": "12", "pods": "9"}, {"pods": "2"}, name="compute"),
        quota({"pods": "3"}, name="brief", scopes=["Terminating"]),
    ]
    assert counted(charges_of(gang()), quotas) == {
        ("compute", "requests.cpu"): 5000,
        ("compute", "pods"): 5,
    }
    assert bounds_of(quotas) == {
        ("compute", "requests.cpu"): Bound(12000, 0),
        ("compute", "pods"): Bound(9, 2),
        ("brief", "pods"): Bound(3, 0),
    }


def test_what_a_quota_refused_is_read_of_the_words_of_the_api_server() -> None:
    sums = "requested: requests.cpu=1,pods=1, used: requests.cpu=4,pods=4, limited: requests.cpu=4"
    said = f'pods "x" is forbidden: exceeded quota: compute, {sums}'
    assert exceeded(said) == {("compute", "requests.cpu"): 1000, ("compute", "pods"): 1}
    assert exceeded("pods x is forbidden: a policy") == {}

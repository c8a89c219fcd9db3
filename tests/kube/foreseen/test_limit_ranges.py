"""LimitRanges fill in what containers lack, and refuse what is out of their bounds."""

import pytest

from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen, NeverAdmitted, foreseen_gang
from kube.objects.admission import LimitRange
from tests.kube.foreseen.clusters import (
    Json,
    cluster,
    container,
    group,
    head,
    limit_range,
    refusal,
    template,
)

SILENT = template({"name": "ray", "image": "ray"})


def by(*found: LimitRange) -> Admission:
    return Admission(limit_ranges=found)


def cpu(made_of: Json, *found: LimitRange) -> int:
    return head(made_of, by(*found)).amounts.get("cpu", 0)


def test_a_default_counts_where_the_container_is_silent() -> None:
    usual = limit_range(default={"cpu": "3"}, defaultRequest={"cpu": "700m"})
    assert cpu(SILENT, usual) == 700
    assert cpu(template(container({"limits": {"cpu": "2"}})), usual) == 2000
    assert cpu(template(container({"requests": {"cpu": "900m"}})), usual) == 900


def test_a_default_limit_alone_is_no_request() -> None:
    """The API server stores a default request for each default limit; nothing is made up here."""
    assert cpu(SILENT, limit_range(default={"cpu": "3"})) == 0


def test_init_containers_get_defaults_too() -> None:
    first = {"name": "first", "image": "none"}
    usual = limit_range(defaultRequest={"cpu": "5"})
    assert cpu(template(initContainers=[first]), usual) == 5000


def test_of_several_limit_ranges_the_first_by_name_wins() -> None:
    one, other = (limit_range(n, defaultRequest={"cpu": n[1:]}) for n in ("a1", "b2"))
    assert cpu(SILENT, other, one) == cpu(SILENT, one, other) == 1000


def test_in_one_limit_range_the_last_default_wins() -> None:
    raw = limit_range(defaultRequest={"cpu": "1"})
    both = (*raw.spec.limits, *limit_range(defaultRequest={"cpu": "2"}).spec.limits)
    changed = LimitRange(raw.metadata, type(raw.spec)(both))
    assert cpu(SILENT, changed) == 2000


def test_defaults_are_for_containers_only() -> None:
    assert cpu(SILENT, limit_range(kind="Pod", defaultRequest={"cpu": "9"})) == 0


def resources(request: str = "", limit: str = "") -> Json:
    sides = {"requests": request, "limits": limit}
    return template(container({s: {"cpu": amount} for s, amount in sides.items() if amount}))


@pytest.mark.parametrize(
    ("bound", "made_of", "said"),
    [
        ({"max": {"cpu": "2"}}, resources(limit="3"), "limit of container ray is 3000m"),
        ({"max": {"cpu": "2"}}, resources("1"), "limit of container ray is absent"),
        ({"min": {"cpu": "2"}}, resources("1"), "request of container ray is 1000m"),
        ({"min": {"memory": "1Mi"}}, resources("1"), "request of container ray is absent"),
        (
            {"maxLimitRequestRatio": {"cpu": "1.5"}},
            resources("1", "1501m"),
            "the cpu limit of container ray is 1501m; allowed: at most 1.5 times the request",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            resources("1"),
            "limit of container ray is absent",
        ),
    ],
)
def test_what_is_out_of_bounds_is_refused(bound: Json, made_of: Json, said: str) -> None:
    found = refusal(made_of, by(limit_range(**bound)))
    assert found.startswith("headGroupSpec.template: LimitRange limits: the ")
    assert said in found


@pytest.mark.parametrize(
    "bound",
    [
        {"max": {"cpu": "2"}, "min": {"cpu": "1"}},
        {"max": {"cpu": "100E"}},
        {"maxLimitRequestRatio": {"cpu": "2"}},
    ],
)
def test_what_is_within_bounds_passes(bound: Json) -> None:
    assert cpu(resources("1", "2"), limit_range(**bound)) == 1000


@pytest.mark.parametrize(("least", "passes"), [("200m", True), ("201m", False)])
def test_the_init_container_of_workers_is_judged_too(least: str, passes: bool) -> None:
    """A minimum above its 200m lets KubeRay make no worker at all."""
    found = foreseen_gang(cluster(group()), by(limit_range(min={"cpu": least})))
    assert isinstance(found, Foreseen) is passes
    if isinstance(found, NeverAdmitted):
        assert "the cpu request of container wait-gcs-ready is 200m" in found.message


def test_the_bounds_of_a_pod_count_all_its_containers() -> None:
    two = template(*(container({"limits": {"cpu": "1"}}, name) for name in "ab"))
    assert cpu(two, limit_range(kind="Pod", max={"cpu": "2"})) == 2000
    said = "the cpu limit of the pod is 2000m; allowed: at most 1999m"
    assert said in refusal(two, by(limit_range(kind="Pod", max={"cpu": "1999m"})))


def test_a_request_above_a_default_limit_is_refused() -> None:
    found = refusal(resources("3"), by(limit_range(default={"cpu": "2"})))
    assert 'containers[ray].resources.requests[cpu]: "3000m" is not valid' in found
    assert "at most 2000m, the limit" in found

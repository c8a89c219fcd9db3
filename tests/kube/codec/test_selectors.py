"""Affinity terms and spread constraints are read as the API server and kube-scheduler mean them."""

from typing import Any

import pytest

from kube.codec.pod import pod_shape
from kube.codec.profiles.scheduler_profiles import DEFAULT_SCHEDULER, RELAXED, Profile
from kube.codec.selectors import anti_affinity_terms
from scheduling.model.constraints import PodTerm, Requirement, SpreadConstraint
from tests.kube.codec.pods import REQUIRED, Json, pod


def near(**term: Any) -> PodTerm:
    """Read one required affinity term of a pod in namespace red."""
    affinity = {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}
    [found] = pod_shape(pod({"affinity": affinity}, namespace="red")).affinity
    return found


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, (Requirement("", "In", ()),)),  # none at all picks nothing
        ({}, ()),
        ({"matchLabels": {"a": "b"}}, (Requirement("a", "In", ("b",)),)),
        (
            {
                "matchLabels": {"a": "b"},
                "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}],
            },
            (Requirement("a", "In", ("b",)), Requirement("c", "NotIn", ("d",))),
        ),
    ],
)
def test_which_pods_a_term_picks(selector: Json | None, expected: tuple[Requirement, ...]) -> None:
    assert near(labelSelector=selector) == PodTerm("zone", expected, ("red",))


@pytest.mark.parametrize(
    ("term", "namespaces", "elsewhere"),
    [
        ({}, ("red",), None),
        ({"namespaces": ["blue"]}, ("blue",), None),
        ({"namespaceSelector": {}}, (), ()),
        ({"namespaces": ["blue"], "namespaceSelector": {}}, ("blue",), ()),
        (
            {"namespaceSelector": {"matchLabels": {"a": "b"}}},
            (),
            (Requirement("a", "In", ("b",)),),
        ),
    ],
)
def test_which_namespaces_a_term_reaches(
    term: Json, namespaces: tuple[str, ...], elsewhere: tuple[Requirement, ...] | None
) -> None:
    assert near(labelSelector={}, **term) == PodTerm("zone", (), namespaces, elsewhere)


def test_anti_affinity_is_read_of_every_pod() -> None:
    affinity = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}}
    found = pod({"affinity": affinity}, namespace="red")
    expected = (PodTerm("zone", (), ("red",)),)
    assert anti_affinity_terms(found) == pod_shape(found).anti_affinity == expected
    assert not pod_shape(found).unsupported


def test_most_pods_have_no_inter_pod_constraints() -> None:
    specs: list[Json] = [{}, {"affinity": {}}, {"affinity": {"podAntiAffinity": {}}}]
    for spec in specs:
        assert anti_affinity_terms(pod(spec)) == pod_shape(pod(spec)).affinity == ()


def spread(**constraint: Any) -> SpreadConstraint:
    """Read one constraint of a pod in namespace red with the labels app=ray and rev=7."""
    whole = {
        "maxSkew": 2,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "ray"}},
        **constraint,
    }
    spec = {"topologySpreadConstraints": [whole]}
    [found] = pod_shape(pod(spec, namespace="red", labels={"app": "ray", "rev": "7"})).spread
    return found


IS_RAY = Requirement("app", "In", ("ray",))


IS_REV_7 = Requirement("rev", "In", ("7",))


def test_a_spread_constraint_counts_in_its_own_namespace_with_the_defaults_of_the_api() -> None:
    assert spread() == SpreadConstraint(PodTerm("zone", (IS_RAY,), ("red",)), 2, 1, True, False)


def test_what_a_spread_constraint_says_of_nodes_and_domains() -> None:
    found = spread(minDomains=3, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor")
    assert (found.min_domains, found.honors_affinity, found.honors_taints) == (3, False, True)
    assert spread(nodeAffinityPolicy="Honor", nodeTaintsPolicy="Ignore") == spread()


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({"matchLabelKeys": ["rev", "absent"]}, (IS_RAY, IS_REV_7)),
        (
            {
                "labelSelector": {
                    "matchLabels": {"app": "ray"},
                    "matchExpressions": [{"key": "rev", "operator": "In", "values": ["7"]}],
                },
                "matchLabelKeys": ["rev"],
            },
            (IS_RAY, IS_REV_7),
        ),
        ({"labelSelector": {}, "matchLabelKeys": ["rev"]}, (IS_REV_7,)),
        ({"labelSelector": {}}, (Requirement("", "In", ()),)),
        ({"labelSelector": None}, (Requirement("", "In", ()),)),
        ({"labelSelector": None, "matchLabelKeys": ["rev"]}, (Requirement("", "In", ()),)),
    ],
)
def test_the_pods_that_a_spread_constraint_counts(
    constraint: Json, expected: tuple[Requirement, ...]
) -> None:
    """Keys to match are merged once, by the API server or here; a missing one counts no pod."""
    assert spread(**constraint).counted.selector == expected


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [({}, False), ({"minDomains": 1}, False), ({"minDomains": 2}, True),
     ({"nodeAffinityPolicy": "Ignore"}, True)],
)  # fmt: skip
def test_which_spread_constraints_bind_a_pinned_pod(constraint: Json, expected: bool) -> None:
    assert spread(**constraint).binds_pinned is expected


def test_spread_constraints_mean_nothing_where_they_only_score_or_the_plugin_is_off() -> None:
    scores = {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}
    binds = {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}
    off = {DEFAULT_SCHEDULER: Profile(off=RELAXED)}
    assert pod_shape(pod(scores)).spread == ()
    assert pod_shape(pod(binds), off).spread == ()
    assert len(pod_shape(pod(binds)).spread) == 1

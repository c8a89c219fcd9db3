"""What do the default constraints of a profile mean to the pods of a gang, and from when on?"""

from dataclasses import replace

import pytest

from scheduling.company import Company, CompanyTable, Labels
from scheduling.cycle import run_cycle
from scheduling.model import (
    GangKey,
    Group,
    Member,
    PendingGang,
    PodShape,
    PodTerm,
    Requirement,
    SpreadConstraint,
)
from scheduling.services import Service, ServiceTable
from scheduling.verdict import Admitted, Reason, Refusal, Verdict
from tests.builders import columns, node, shape

APP: Labels = (("app", "ray"),)
BY_APP = Service("team", "ray", APP)
UNCOUNTED = (
    SpreadConstraint(PodTerm("zone", (), ()), 1),
    SpreadConstraint(PodTerm("host", (), ()), 3, min_domains=2, heeds_taints=True),
)
WORLD = columns(node("a1", labels={"zone": "a"}), node("b1", labels={"zone": "b"}, cpu=1))


def defaulted(*constraints: SpreadConstraint) -> PodShape:
    return replace(shape(cpu=1), spread_by_default=constraints)


def gang(of: PodShape, *labels: Labels) -> PendingGang:
    """A gang with a worker for each set of labels."""
    members = tuple(Member("workers", of, each) for each in labels)
    group = Group("workers", "", of, len(labels))
    return PendingGang(GangKey("team", "gang"), 0, 0.0, (group,), members=members)


def table(*services: Service) -> ServiceTable:
    found = ServiceTable()
    for each in services:
        found.put(each)
    return found


def spread(asked: PendingGang, *services: Service) -> PendingGang:
    [found] = table(*services).spread_all([asked])
    return found


def verdict(asked: PendingGang, *services: Service) -> Verdict:
    company = Company(CompanyTable())
    [decision] = run_cycle([spread(asked, *services)], WORLD, company=company)
    return decision.verdict


def test_constraints_count_what_the_services_that_select_a_pod_ask_for_together() -> None:
    gpu = Service("team", "gpu", (("tier", "gpu"),))
    others = Service("team", "others", (("app", "web"),)), Service("elsewhere", "ray", APP)
    asked = gang(defaulted(*UNCOUNTED), (("app", "ray"), ("name", "w"), ("tier", "gpu")))
    found = spread(asked, BY_APP, gpu, *others)
    counted = Requirement("app", "In", ("ray",)), Requirement("tier", "In", ("gpu",))
    expected = (
        SpreadConstraint(PodTerm("zone", counted, ("team",)), 1),
        SpreadConstraint(PodTerm("host", counted, ("team",)), 3, min_domains=2, heeds_taints=True),
    )
    assert found.minimum[0].shape.spread == found.members[0].shape.spread == expected
    assert found.minimum[0].shape.key == asked.minimum[0].shape.key


def test_a_pod_that_no_service_selects_is_bound_by_none_of_them() -> None:
    """Not even by the label that their domains need."""
    asked = gang(defaulted(SpreadConstraint(PodTerm("rack", (), ()), 1)), APP, APP)
    empty = Service("team", "empty", ())
    assert isinstance(verdict(asked, empty, Service("team", "web", (("app", "web"),))), Admitted)
    refused = verdict(asked, empty, BY_APP)
    assert isinstance(refused, Refusal)
    assert "2 are in no domain of a topology spread constraint" in refused.message


def test_pods_are_spread_over_domains_once_a_service_selects_them() -> None:
    asked = gang(defaulted(UNCOUNTED[0]), APP, APP, APP, APP)
    assert isinstance(verdict(asked), Admitted)
    refused = verdict(asked, BY_APP)
    assert isinstance(refused, Refusal)
    assert "3 of 4 workers fit: topology spread over zone (maxSkew 1)" in refused.message


def test_constraints_of_its_own_are_left_as_they_are() -> None:
    own = (SpreadConstraint(PodTerm("zone", (), ("team",)), 5),)
    asked = gang(shape(cpu=1, spread=own), APP)
    assert spread(asked, BY_APP) is asked


@pytest.mark.parametrize("other", [(), (("app", "ray"), ("tier", "gpu"))])
def test_equal_pods_that_services_tell_apart_are_unsupported_by_name(other: Labels) -> None:
    asked = gang(defaulted(UNCOUNTED[0]), APP, other)
    services = BY_APP, Service("team", "gpu", (("tier", "gpu"),))
    refused = verdict(asked, *services)
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.UNSUPPORTED
    named = "workers: default topology spread constraints of pods that different Services select"
    assert named in refused.message
    assert isinstance(verdict(asked), Admitted)


def test_pods_of_which_nothing_is_known_are_unsupported() -> None:
    asked = replace(gang(defaulted(UNCOUNTED[0]), APP), members=())
    refused = verdict(asked, BY_APP)
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.UNSUPPORTED


def test_a_gang_that_is_asked_about_again_is_the_same_until_a_service_changes() -> None:
    services, asked = table(BY_APP), gang(defaulted(UNCOUNTED[0]), APP)
    [first] = services.spread_all([asked])
    services.put(BY_APP)
    [second] = services.spread_all([asked])
    assert first is second
    more = gang(defaulted(UNCOUNTED[0]), APP, APP)
    assert [len(each.members) for each in services.spread_all([more])] == [2]
    assert [len(each.members) for each in services.spread_all([asked])] == [1]
    services.drop("team", "ray")
    [third] = services.spread_all([asked])
    assert third == asked

"""Pods nominated to a node, with anti-affinity from or to them: what the oracle has taught.

kube-scheduler adds a nominated pod to what it knows of that one node, while it looks at that node,
and only for pods of no higher priority.
"""

from dataclasses import replace

import pytest

from scheduling.cycle import run_cycle
from scheduling.model.constraints import PodTerm, SpreadConstraint
from scheduling.model.gang import Group, Member
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import ExistingPods, NominatedPod, PodIndex
from tests.builders import columns, gang, group, node, require, shape

WEB = ("team", (("app", "web"),))
ALL_PODS, WEBS = (require("app", "Exists"),), (require("app", "In", "web"),)
ZONE = columns(*(node(name, cpu=1, labels={"host": name, "zone": "x"}) for name in ("n0", "n1")))


def admitted(
    asked: Group, *nominated: NominatedPod, priority: int = 0, on: NodeSnapshot = ZONE
) -> bool:
    """Say whether a gang of one pod set gets its place beside nominated pods."""
    table = PodIndex()
    for pod in nominated:
        table.nominate(pod, +1)
    pending = gang("g", asked)
    members = (Member(asked.pod_set, asked.shape, (("app", asked.pod_set),)),)
    whole = replace(pending, members=members, pod_priority=priority)
    [decision] = run_cycle([whole], on, existing=ExistingPods(table))
    return isinstance(decision.verdict, Admitted)


def avoiding(key: str) -> PodTerm:
    return PodTerm(key, ALL_PODS, ("team",))


def avoiding_webs(key: str) -> PodShape:
    return shape(cpu=1, anti_affinity=[PodTerm(key, WEBS, ("team",))])


@pytest.mark.parametrize(("priority", "fits"), [(5, False), (10, False), (11, True)])
def test_one_of_lower_priority_keeps_no_pod_away(priority: int, fits: bool) -> None:
    """Oracle 8/898: two of three workers were said to fit, the third kept away by such a pod."""
    nominated = [NominatedPod(WEB, (avoiding("host"),), name, 10) for name in ("n0", "n1")]
    asked = group("worker", 1, avoiding_webs("host"))
    assert admitted(asked, *nominated, priority=priority) is fits


def test_it_keeps_away_from_its_node_not_from_its_domain() -> None:
    """Oracle 8/59: the head was kept out of a zone to which a web pod was nominated.

    kube-scheduler bound it to the other node of the zone.
    """
    nominated = NominatedPod(WEB, (avoiding("zone"),), "n0", 10)
    assert admitted(group("head", 1, avoiding_webs("zone")), nominated)
    assert not admitted(group("head", 2, avoiding_webs("zone")), nominated)


def test_a_node_without_the_key_is_in_no_domain_where_one_is_expected() -> None:
    """Trying everything: a worker was kept from a node without zone by a term about zones."""
    nominated = NominatedPod(WEB, (avoiding("rack"),), "n0", 10)
    assert admitted(group("worker", 2, avoiding_webs("rack")), nominated)


def test_the_plugin_is_skipped_without_terms_of_the_pod_or_of_a_bound_one() -> None:
    """Oracle 8/469: kube-scheduler bound the head beside a nominated pod with anti-affinity to it.

    With no term of its own, and none of a bound pod that picks it, the head skips the plugin.
    """
    nominated = [NominatedPod(WEB, (avoiding("host"),), name, 10) for name in ("n0", "n1")]
    assert admitted(group("head", 1, shape(cpu=1)), *nominated)


def test_once_a_bound_pod_has_a_term_those_of_nominated_pods_count_too() -> None:
    table = PodIndex()
    table.use(WEB, (avoiding("host"),), "n0", +1)
    table.nominate(NominatedPod(WEB, (avoiding("host"),), "n1", 10), +1)
    pending = gang("g", group("head", 1, shape(cpu=1)))
    members = (Member("head", pending.minimum[0].shape, (("app", "head"),)),)
    whole = replace(pending, members=members)
    [decision] = run_cycle([whole], ZONE, existing=ExistingPods(table))
    assert not isinstance(decision.verdict, Admitted)


@pytest.mark.parametrize(("taken", "fits"), [("n0", True), ("n0 n1", False)])
def test_one_that_is_counted_is_asked_about_on_its_node_alone(taken: str, fits: bool) -> None:
    """Properties m/1150, m/1908, m/2365: the gang was Undecided, kube-scheduler would bind it.

    One that is counted is nominated in the only zone with room. Each zone may have one pod more
    than the other: on the node where it is nominated it would be one too many, elsewhere it is not.
    """
    worker = shape(cpu=1, spread=[SpreadConstraint(PodTerm("zone", ALL_PODS, ("team",)), 1)])
    nodes = (node(name, cpu=1, labels={"zone": "x"}) for name in ("n0", "n1"))
    on = columns(*nodes, node("n2", cpu=0, labels={"zone": "y"}))
    nominated = [NominatedPod(WEB, (), name, 10) for name in taken.split()]
    assert admitted(group("worker", 1, worker), *nominated, on=on) is fits

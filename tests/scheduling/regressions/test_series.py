"""Gangs in which pods may begin a series: what the oracle and trying everything have taught.

A pod whose required affinity picks itself may begin where it likes, as long as nobody in the
cluster whom its terms pick stands on a node with one of their keys. Whether it does begin, or must
join, then depends on who is bound first, and kube-scheduler takes pods in an order of its own.
"""

import pytest

from scheduling.cycle import run_cycle
from scheduling.model.constraints import PodTerm
from scheduling.model.gang import Group, Member, PendingGang
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Refusal, Verdict
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import AssumedPods, ExistingPods, PodIndex
from tests.builders import columns, gang, group, node, require, shape

MEMBERS = (require("set", "Exists"),)
HOSTS = tuple(f"n{at}" for at in range(5))


def drawn(key: str) -> PodShape:
    """Return a shape that wants to be near any member of a gang."""
    return shape(cpu=1, near=[PodTerm(key, MEMBERS, ("team",))])


def decide(on: NodeSnapshot, *groups: Group, table: PodIndex | None = None) -> Verdict:
    asked = gang("g", *groups)
    members = tuple(Member(g.pod_set, g.shape, (("set", g.pod_set),)) for g in groups)
    whole = PendingGang(asked.key, 0, 0.0, asked.minimum, (), members)
    [decision] = run_cycle([whole], on, existing=ExistingPods(table or PodIndex()))
    return decision.verdict


def waves_of(verdict: Verdict) -> dict[str, int]:
    """Return the wave of each pod set."""
    assert isinstance(verdict, Admitted), verdict
    return {each.pod_set: each.wave for each in verdict.placement.assignments}


def test_a_member_without_the_key_does_not_begin_the_series() -> None:
    """Oracle 8/47: kube-scheduler bound the head to a node without zone, the worker to a zone.

    The head counts in no domain, so the worker may begin, before or after it. The number of
    places was taken to be two, "no zone" being one of them, and the gang was Undecided.
    """
    on = columns(node("n0", cpu=1), node("n1", cpu=1, labels={"zone": "x"}))
    head, worker = group("head", 1, shape(cpu=1)), group("worker", 1, drawn("zone"))
    assert isinstance(decide(on, head, worker), Admitted)


def test_a_member_with_one_of_two_keys_keeps_others_from_beginning() -> None:
    """Trying everything: bound first, it counts in the zone, and the other has nobody on its host.

    Both were said to be in one place, and to be bound in any order.
    """
    on = columns(
        node("n0", cpu=1, labels={"zone": "x", "host": "n0"}),
        node("n1", cpu=1, labels={"zone": "x"}),
    )
    near = [PodTerm(key, MEMBERS, ("team",)) for key in ("zone", "host")]
    verdict = decide(on, group("a", 1, shape(cpu=1)), group("b", 1, shape(cpu=1, near=near)))
    assert waves_of(verdict) == {"a": 1, "b": 0}


def test_members_that_are_drawn_to_nobody_hold_a_series() -> None:
    """Oracle 8/230 and 8/292: others of the gang stood elsewhere too, and the gang was Undecided.

    Wherever a drawn pod goes, a member stands that will be bound in any case; who comes first
    does not matter.
    """
    on = columns(*(node(name, cpu=4, pods=2, labels={"host": name}) for name in HOSTS))
    free, near = group("b", 5, shape(cpu=1)), group("a", 3, drawn("host"))
    assert isinstance(decide(on, free, near), Admitted)


def test_what_only_one_order_allows_is_released_in_that_order() -> None:
    """Trying everything: the drawn pod must begin before the other is bound, each in its zone.

    It was said to be impossible, later Undecided; kube-scheduler, taking the drawn pod first, binds
    both.
    """
    on = columns(*(node(name, cpu=1, labels={"zone": name}) for name in HOSTS[:2]))
    verdict = decide(on, group("a", 1, shape(cpu=1)), group("b", 1, drawn("zone")))
    assert waves_of(verdict) == {"a": 1, "b": 0}


def test_a_series_that_holds_by_itself_holds_others_too() -> None:
    """Oracle 8/779: workers begin a series in the only zone, the head stands beside one of them.

    Whether the head or a worker is bound first, the worker at its side will be bound as well. The
    gang was Undecided, for only members that are drawn to nobody were counted on.
    """
    on = columns(*(node(name, cpu=2, labels={"host": name, "zone": "x"}) for name in HOSTS[:3]))
    worker = PodTerm("zone", (require("set", "In", "worker"),), ("team",))
    workers = group("worker", 3, shape(cpu=1, near=[worker]))
    head = group("head", 1, drawn("host"))
    assert isinstance(decide(on, head, workers), Admitted)


@pytest.mark.parametrize("known", [False, True], ids=["by its labels", "by its name"])
def test_a_pod_that_would_not_be_tried_again_comes_after_those_it_needs(known: bool) -> None:
    """Oracle 9/721: the head, refused before the worker beside it was bound, stayed refused.

    Its term finds the namespace by labels, without which kube-scheduler looks when it decides whom
    to try again. It was said to be bound sooner or later. Its wave is after the worker's.
    """
    table = PodIndex()
    table.put_namespace("team", {"ray": "yes"})
    table.use(("team", ()), (), "n1", +1)
    selector = (require("ray", "In", "yes"),)
    near = PodTerm("host", (), ("team",) if known else (), selector)
    on = columns(
        *(node(name, cpu=cpu, labels={"host": name}) for name, cpu in (("n0", 4), ("n1", 1)))
    )
    head, worker = group("head", 1, shape(cpu=2, near=[near])), group("worker", 2, shape(cpu=1))
    verdict = decide(on, head, worker, table=table)
    assert waves_of(verdict) == {"head": 0 if known else 1, "worker": 0}


@pytest.mark.parametrize("known", [False, True], ids=["by its labels", "by its name"])
def test_it_waits_for_those_who_are_due(known: bool) -> None:
    """What it is drawn to has room and is not bound yet: refused now, it would stay refused."""
    table = PodIndex()
    table.put_namespace("team", {"ray": "yes"})
    selector = (require("ray", "In", "yes"),)
    near = PodTerm("host", (), ("team",) if known else (), selector)
    asked = gang("g", group("worker", 1, shape(cpu=1, near=[near])))
    members = (Member("worker", asked.minimum[0].shape, ()),)
    due = AssumedPods(frozenset({("team", (("app", "other"),))}), "n0")
    on = columns(node("n0", cpu=4, labels={"host": "n0"}))
    whole = PendingGang(asked.key, 0, 0.0, asked.minimum, (), members)
    [decision] = run_cycle([whole], on, existing=ExistingPods(table, [due]))
    assert isinstance(decision.verdict, Admitted if known else Refusal)

"""The first-pod rule: what the oracle and trying everything have taught.

A pod whose required affinity matches itself may be bound on any node with the keys, as long as no
matching pod is bound on a node with one of them. Whether it is the first, or must join others, then
depends on the order of binding, and kube-scheduler takes pods in an order of its own.
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


def attracted(key: str) -> PodShape:
    """Return a shape with affinity to any pod of a gang."""
    return shape(cpu=1, affinity=[PodTerm(key, MEMBERS, ("team",))])


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


def test_a_pod_on_a_node_without_the_key_is_no_first_pod() -> None:
    """Oracle 8/47: kube-scheduler bound the head to a node without zone, the worker to a zone.

    The head counts in no domain, so the worker may be first, before or after it. The number of
    places was taken to be two, "no zone" being one of them, and the gang was Undecided.
    """
    on = columns(node("n0", cpu=1), node("n1", cpu=1, labels={"zone": "x"}))
    head, worker = group("head", 1, shape(cpu=1)), group("worker", 1, attracted("zone"))
    assert isinstance(decide(on, head, worker), Admitted)


def test_a_pod_on_a_node_with_one_of_two_keys_leaves_no_first_pod() -> None:
    """Trying everything: bound first, it counts in the zone, and the other has none on its host.

    Both were said to be in one place, and to be bound in any order.
    """
    on = columns(
        node("n0", cpu=1, labels={"zone": "x", "host": "n0"}),
        node("n1", cpu=1, labels={"zone": "x"}),
    )
    near = [PodTerm(key, MEMBERS, ("team",)) for key in ("zone", "host")]
    verdict = decide(on, group("a", 1, shape(cpu=1)), group("b", 1, shape(cpu=1, affinity=near)))
    assert waves_of(verdict) == {"a": 1, "b": 0}


def test_pods_without_affinity_are_partners_of_the_others() -> None:
    """Oracle 8/230 and 8/292: others of the gang stood elsewhere too, and the gang was Undecided.

    Wherever a pod with affinity goes there is one that is bound in any case; the order does not
    matter.
    """
    on = columns(*(node(name, cpu=4, pods=2, labels={"host": name}) for name in HOSTS))
    free, near = group("b", 5, shape(cpu=1)), group("a", 3, attracted("host"))
    assert isinstance(decide(on, free, near), Admitted)


def test_what_only_one_order_allows_is_released_in_that_order() -> None:
    """Trying everything: the pod with affinity must be bound before the other, each in its zone.

    It was said to be impossible, later Undecided; kube-scheduler, taking that pod first, binds
    both.
    """
    on = columns(*(node(name, cpu=1, labels={"zone": name}) for name in HOSTS[:2]))
    verdict = decide(on, group("a", 1, shape(cpu=1)), group("b", 1, attracted("zone")))
    assert waves_of(verdict) == {"a": 1, "b": 0}


def test_pods_with_affinity_to_each_other_are_partners_of_others_too() -> None:
    """Oracle 8/779: workers share the only zone, the head is on the node of one of them.

    Whether the head or a worker is bound first, the worker at its side will be bound as well. The
    gang was Undecided, for only pods without affinity were counted on.
    """
    on = columns(*(node(name, cpu=2, labels={"host": name, "zone": "x"}) for name in HOSTS[:3]))
    worker = PodTerm("zone", (require("set", "In", "worker"),), ("team",))
    workers = group("worker", 3, shape(cpu=1, affinity=[worker]))
    head = group("head", 1, attracted("host"))
    assert isinstance(decide(on, head, workers), Admitted)


@pytest.mark.parametrize("known", [False, True], ids=["by its labels", "by its name"])
def test_a_pod_that_is_not_requeued_comes_after_its_partners(known: bool) -> None:
    """Oracle 9/721: the head, refused before the worker beside it was bound, stayed refused.

    Its term finds the namespace by labels, without which kube-scheduler looks when it decides which
    pods to try again. It was said to be bound sooner or later. Its wave is after the worker's.
    """
    table = PodIndex()
    table.put_namespace("team", {"ray": "yes"})
    table.use(("team", ()), (), "n1", +1)
    selector = (require("ray", "In", "yes"),)
    near = PodTerm("host", (), ("team",) if known else (), selector)
    on = columns(
        *(node(name, cpu=cpu, labels={"host": name}) for name, cpu in (("n0", 4), ("n1", 1)))
    )
    head, worker = group("head", 1, shape(cpu=2, affinity=[near])), group("worker", 2, shape(cpu=1))
    verdict = decide(on, head, worker, table=table)
    assert waves_of(verdict) == {"head": 0 if known else 1, "worker": 0}


@pytest.mark.parametrize("known", [False, True], ids=["by its labels", "by its name"])
def test_a_pod_that_is_not_requeued_waits_for_assumed_partners(known: bool) -> None:
    """Its partner has room and is not bound yet: refused now, the pod would stay refused."""
    table = PodIndex()
    table.put_namespace("team", {"ray": "yes"})
    selector = (require("ray", "In", "yes"),)
    near = PodTerm("host", (), ("team",) if known else (), selector)
    asked = gang("g", group("worker", 1, shape(cpu=1, affinity=[near])))
    members = (Member("worker", asked.minimum[0].shape, ()),)
    due = AssumedPods(frozenset({("team", (("app", "other"),))}), "n0")
    on = columns(node("n0", cpu=4, labels={"host": "n0"}))
    whole = PendingGang(asked.key, 0, 0.0, asked.minimum, (), members)
    [decision] = run_cycle([whole], on, existing=ExistingPods(table, [due]))
    assert isinstance(decision.verdict, Admitted if known else Refusal)

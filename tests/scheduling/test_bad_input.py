"""Every gang gets a verdict, however absurd, and so does the next one."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from scheduling.cycle import Settings, run_cycle
from scheduling.diagnosis.refusals import MOST_CONSTRAINED_KINDS, MOST_KINDS
from scheduling.filters import free_capacity
from scheduling.filters.free_capacity import At, FreeCapacity
from scheduling.model.amounts import Amounts
from scheduling.model.constraints import NodeTerm, PodTerm, Requirement
from scheduling.model.gang import Group, Member, PendingGang, Topology
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import AssumedPods, ExistingPods, PodIndex, PodKind
from tests.builders import columns, group, node, require, shape
from tests.scheduling.admission.test_interdependent import HOST, ZONE, asking, constrained, term

WORLD = columns(
    *(
        node(f"n{at:03}", cpu=64, labels={HOST: f"n{at:03}", ZONE: f"z{at % 9}"})
        for at in range(200)
    )
)
MODEST = asking(group("head", 1, shape(cpu=1)), name="modest")


def verdict(*groups: Group, on: NodeSnapshot = WORLD) -> Verdict:
    """The verdict for a gang of these groups; a modest one behind it is admitted in any case."""
    first = asking(*groups, name="absurd")
    decisions = run_cycle([first, MODEST], on, existing=ExistingPods(PodIndex()))
    found = {each.key.name: each.verdict for each in decisions}
    assert isinstance(found["modest"], Admitted)
    return found["absurd"]


def reason(*groups: Group) -> str:
    found = verdict(*groups)
    return "Admitted" if isinstance(found, Admitted) else found.reason


def workers(near: list[PodTerm], apart: list[PodTerm]) -> Group:
    return group("w", 5000, constrained(near, apart))


OWN_ZONE, OWN_HOST, OTHERS = term("w", ZONE), term("w", HOST), term("x", ZONE)


@pytest.mark.parametrize(
    ("near", "apart", "expected"),
    [
        ([], [OWN_HOST], Reason.NO_FEASIBLE_NODE),
        ([OWN_HOST], [OWN_HOST], Reason.NO_FEASIBLE_NODE),
        ([OWN_HOST], [OWN_ZONE], Reason.NO_FEASIBLE_NODE),
        ([OTHERS], [], Reason.NO_FEASIBLE_NODE),
        ([OWN_ZONE], [], Reason.NO_FEASIBLE_NODE),
        ([term("w", f"k{at}") for at in range(100)], [], Reason.NO_FEASIBLE_NODE),
        ([], [term(f"x{at}", HOST) for at in range(100)], "Admitted"),
    ],
)
def test_five_thousand_pods_with_absurd_affinity_get_a_verdict(
    near: list[PodTerm], apart: list[PodTerm], expected: str
) -> None:
    assert reason(workers(near, apart)) == expected


def circle(kinds: int) -> list[Group]:
    """Each pod set has affinity to the next one, the last to the first."""
    return [group(f"s{at}", 10, constrained([term(f"s{(at + 1) % kinds}")])) for at in range(kinds)]


def test_pod_sets_that_are_drawn_to_each_other_in_a_circle_get_a_verdict() -> None:
    """Nobody may begin."""
    assert reason(*circle(MOST_CONSTRAINED_KINDS)) == Reason.NO_FEASIBLE_NODE


def test_more_kinds_of_constrained_pods_than_can_be_judged_are_unsupported() -> None:
    found = verdict(*circle(MOST_CONSTRAINED_KINDS + 1))
    assert not isinstance(found, Admitted)
    assert found.reason is Reason.UNSUPPORTED
    assert found.message.startswith(
        "not supported by Muster; 65 kinds of pods that have affinity or topology spread "
        "constraints, more than 64 ("
    )


def test_more_kinds_of_pods_than_can_be_judged_are_unsupported() -> None:
    many = [group(f"s{at:03}", 1, shape(cpu=f"{at + 1}m")) for at in range(MOST_KINDS + 1)]
    assert reason(*many[:-1]) == "Admitted"
    found = verdict(*many)
    assert not isinstance(found, Admitted)
    assert found.message.startswith("not supported by Muster; 257 kinds of pods, more than 256 (")


@pytest.mark.parametrize(
    "terms",
    [
        (NodeTerm((require("zone", "In", "z1"), require("zone", "NotIn", "z1"))),),
        (NodeTerm((require("zone", "Exists"), require("zone", "DoesNotExist"))),),
        (NodeTerm((require("zone", "Gt", "1"), require("zone", "Lt", "2"))),),
        (NodeTerm((require("zone", "Gt", "1e400"),)),),
        (NodeTerm((require("zone", "In"),)),),
        (NodeTerm((require("zone", "Sometimes", "z1"),)),),
        (NodeTerm((), (require("metadata.name", "In", "n000", "n001"),)),),
        (),
        (NodeTerm(), NodeTerm()),
    ],
)
def test_node_affinity_that_contradicts_itself_or_means_nothing_leaves_no_node(
    terms: tuple[NodeTerm, ...],
) -> None:
    assert reason(group("w", 2, shape(cpu=1, node_affinity=terms))) == Reason.NO_FEASIBLE_NODE


def test_nodes_that_offer_nothing_hold_no_pod_and_break_nothing() -> None:
    silent = node("silent", cpu=0, memory=0, pods=0)
    assert isinstance(
        verdict(group("w", 1, shape(cpu=63)), on=columns(silent, node("n"))), Admitted
    )


# ---- what a try costs


class CountingTable(PodIndex):
    """Counts how often it is asked whether terms pick pods."""

    asked = 0

    def picks(self, terms: Iterable[PodTerm], kind: PodKind) -> bool:
        self.asked += 1
        return super().picks(terms, kind)


def unlike(count: int, asked: PodShape) -> PendingGang:
    """Workers with a label each of its own."""
    made = asking(group("w", count, asked))
    labels = ((("app", "w"), ("index", str(at))) for at in range(count))
    members = tuple(Member("w", asked, each) for each in labels)
    return replace(made, members=members)


def test_labels_that_no_term_reads_do_not_make_pods_different() -> None:
    table = CountingTable()
    for at in range(50):
        table.use(("team", (("app", f"x{at}"),)), (term(f"x{at}", HOST),), f"n{at:03}", +1)
    [decision] = run_cycle([unlike(1000, shape(cpu=1))], WORLD, existing=ExistingPods(table))
    assert isinstance(decision.verdict, Admitted)
    assert table.asked < 1000


def test_what_is_known_of_shapes_that_are_too_large_is_not_handed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(free_capacity, "ASKED_BYTES", 10_000)
    world, asked = columns(node("a")), list[str]()
    for size in (9_000, 11_000):
        name, known = "x" * size, FreeCapacity.of(world)

        def derive(at: At, name: str = name) -> Amounts:
            asked.extend([name] * isinstance(at, slice))
            return np.ones(1, dtype=np.int64)[at]

        for _ in range(4):
            known.per_node(name, derive)
            known = known.moved_to(world)
    assert [len(name) for name in asked] == [9_000, *[11_000] * 4]


def test_pods_with_labels_of_their_own_are_asked_once_and_not_per_node() -> None:
    """Another gang with affinity to them looks at each kind a few times."""
    table, shunning = CountingTable(), constrained([], [term("x", HOST)])
    gangs = [unlike(200, shape(cpu=33)), asking(group("v", 1, shunning), name="later")]
    run_cycle(gangs, WORLD, existing=ExistingPods(table))
    assert 200 <= table.asked < 2000


IN_A_ZONE = Topology(("w",), required=ZONE)


@pytest.mark.parametrize("topology", [IN_A_ZONE, Topology(("w",), replica=ZONE)])
def test_a_surplus_alone_whose_search_is_given_up_gets_a_verdict(topology: Topology) -> None:
    """Its minimum runs already, so there is nothing of it to speak of."""
    wanted = constrained([term("nobody", HOST)], [])
    unit = (Group("w", "r", wanted, 1),)
    members = (Member("w", wanted, (("app", "w"),), "r"),)
    asked = asking(name="more", surplus=(unit,))
    asked = replace(asked, members=members, topology=topology)
    strict = replace(term("w", ZONE), selector=())
    due = AssumedPods(frozenset({("team", (("app", "z"),))}), "n000", pinned_spread=(strict,))
    [decision] = run_cycle(
        [asked], WORLD, Settings(search_steps=0), ExistingPods(PodIndex(), [due])
    )
    assert isinstance(decision.verdict, Refusal)
    assert decision.verdict.reason is Reason.UNDECIDED


class Searched(tuple[str, ...]):
    """Counts how often it is searched from the beginning."""

    __slots__ = ()

    times = 0

    def __contains__(self, value: object) -> bool:
        Searched.times += 1
        return super().__contains__(value)


@pytest.mark.parametrize("operator", ["In", "NotIn"])
def test_a_list_of_all_hosts_is_not_searched_for_every_host(operator: str) -> None:
    """As node affinity that names them one by one, on thousands of nodes."""
    hosts = Searched(f"n{at:03}" for at in range(200))
    Searched.times = 0
    named = NodeTerm((Requirement(HOST, operator, hosts),))
    found = reason(group("w", 2, shape(cpu=1, node_affinity=(named,))))
    assert found == ("Admitted" if operator == "In" else Reason.NO_FEASIBLE_NODE)
    assert Searched.times == 0


def test_replicas_of_one_shape_in_other_domains_are_told_apart_when_refused() -> None:
    """The head shuns the zone where all replicas would go; those of the surplus go nowhere."""
    worker = shape(cpu=2)
    parts = [Group("w", name, worker, 2) for name in ("r0", "s0")]
    head = group("head", 1, constrained([], [term("w")]))
    members = tuple(Member("w", worker, (("app", "w"),), each.replica) for each in parts)
    asked = asking(head, parts[0], surplus=((parts[1],),))
    asked = replace(
        asked,
        members=(*(each for each in asked.members if each.pod_set == "head"), *members),
        topology=Topology(("w",), replica=ZONE),
    )
    on = columns(node("n", cpu=5, labels={HOST: "n", ZONE: "a"}))
    [decision] = run_cycle([asked], on, existing=ExistingPods(PodIndex()))
    assert isinstance(decision.verdict, Refusal)

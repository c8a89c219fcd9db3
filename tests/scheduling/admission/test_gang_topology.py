"""A gang goes into the best domain, and a refusal names the one that comes closest."""

from collections.abc import Mapping

from scheduling.cycle import Settings, run_cycle
from scheduling.model.constraints import PodTerm, SpreadConstraint
from scheduling.model.gang import Member, Occupied, PendingGang, Topology
from scheduling.model.node import Node
from scheduling.model.verdict import MESSAGE_LIMIT, Admitted, Reason, Refusal, Verdict
from scheduling.state.pod_index import ExistingPods, PodIndex
from tests.builders import GPU, columns, gang, group, node, require, shape

ZONE = "topology.kubernetes.io/zone"
RACK = "rack"
HEAD = shape(cpu=1)
WORKER = shape(gpu=8)
SETS = ("workers",)


def zoned(zone: str, *gpus: int, rack: str = "", cpu: int = 8) -> list[Node]:
    """Nodes of one zone, named after it."""
    labels = {ZONE: zone, **({RACK: rack} if rack else {})}
    return [
        node(f"{zone}{rack}-{at}", gpu=gpu, cpu=cpu, labels=labels) for at, gpu in enumerate(gpus)
    ]


def decided(
    nodes: list[Node],
    workers: int,
    topology: Topology,
    *,
    surplus: int = 0,
    head: int = 1,
    settings: Settings | None = None,
) -> Verdict:
    units = tuple((group("workers", 1, WORKER),) for _ in range(surplus))
    minimum = (group("headgroup", head, HEAD), group("workers", workers, WORKER))
    asked = gang("a", *(each for each in minimum if each.count), surplus=units)
    return verdict(asked, nodes, topology, settings)


def verdict(
    asked: PendingGang,
    nodes: list[Node],
    topology: Topology,
    settings: Settings | None = None,
    used: Mapping[str, Mapping[str, int]] | None = None,
) -> Verdict:
    whole = PendingGang(
        asked.key, 0, 0.0, asked.minimum, asked.surplus, asked.members, topology=topology
    )
    [decision] = run_cycle([whole], columns(*nodes, used=used), settings)
    return decision.verdict


def required(key: str = ZONE, *occupied: str, preferred: str = "") -> Topology:
    places = tuple(Occupied("workers", "", name) for name in occupied)
    return Topology(SETS, required=key, preferred=preferred, occupied=places)


def where(found: Verdict, pod_set: str = "workers") -> dict[str, int]:
    assert isinstance(found, Admitted), found
    mine = [each for each in found.placement.assignments if each.pod_set == pod_set]
    return {name: count for each in mine for name, count in each.nodes}


def refusal(found: Verdict) -> Refusal:
    assert isinstance(found, Refusal), found
    return found


def test_the_workers_go_to_the_tightest_domain_that_holds_them() -> None:
    nodes = [*zoned("a", 8, 8, 8), *zoned("b", 8, 8), *zoned("c", 8)]
    assert where(decided(nodes, 2, required())) == {"b-0": 1, "b-1": 1}


def test_of_equal_domains_the_first_by_name_is_taken() -> None:
    nodes = [*zoned("c", 8, 8), *zoned("b", 8, 8)]
    assert where(decided(nodes, 2, required())) == {"b-0": 1, "b-1": 1}


def test_the_head_may_be_outside() -> None:
    nodes = [*zoned("a", 8, cpu=0), *zoned("b", 0, cpu=8)]
    found = decided(nodes, 1, required())
    assert (where(found), where(found, "headgroup")) == ({"a-0": 1}, {"b-0": 1})


def test_a_refusal_names_the_closest_domain_and_what_it_lacks() -> None:
    nodes = [*zoned("zone-a", 8, 8), *zoned("zone-b", 8, 8, 8), *zoned("zone-c", 8)]
    found = refusal(decided(nodes, 4, required()))
    assert found.reason == Reason.INSUFFICIENT_RESOURCES
    assert found.message == (
        f"no single {ZONE} holds the workers; zone-b comes closest: 3 of 4 workers fit: each needs "
        "8 nvidia.com/gpu on one node, the gang 32 in all; 24 are free, and those that fit leave 0 "
        "(left out: 3 are in other domains)"
    )
    [numbers] = [each for each in found.pod_sets if each.pod_set == "workers"]
    assert (numbers.fit, numbers.wanted) == (3, 4)


def test_a_domain_that_could_never_hold_them_comes_closest_only_where_none_could() -> None:
    """Of those that hold as little, rather one in which there is anything to be freed."""
    nodes = [*zoned("cpus", 0, 0), *zoned("large", 8, 8, 8), *zoned("small", 8, 8)]
    busy = {f"large-{at}": {GPU: 8} for at in range(2)}

    def named(workers: int) -> str:
        asked = gang("a", group("workers", workers, WORKER))
        return refusal(verdict(asked, nodes, required(), used=busy)).message

    assert "large comes closest: 1 of 3 workers fit" in named(3)
    assert "small comes closest: 2 of 4 workers fit" in named(4)
    busy |= {"large-2": {GPU: 8}, "small-0": {GPU: 8}, "small-1": {GPU: 8}}
    assert "large comes closest: 0 of 3 workers fit" in named(3)
    assert "large comes closest: 0 of 4 workers fit" in named(4)


def test_a_head_that_fits_nowhere_is_not_blamed_on_a_domain() -> None:
    asked = gang("a", group("headgroup", 1, HEAD), group("workers", 2, WORKER))
    busy = {name: {"cpu": 8_000} for name in ("a-0", "a-1")}
    found = refusal(verdict(asked, zoned("a", 8, 8), required(), used=busy))
    assert found.message == "0 of 1 headgroup fits: it needs 1 cpu on one node; 0 are free"


def test_what_no_node_could_ever_hold_is_not_blamed_on_a_domain() -> None:
    found = refusal(decided([*zoned("a", 8, 8), *zoned("b", 8)], 4, required()))
    assert found.reason == Reason.NEVER_FITS
    assert found.message.startswith("the gang needs 32 nvidia.com/gpu in all; the nodes that could")


def test_a_label_that_no_node_has_is_said() -> None:
    found = refusal(decided(zoned("a", 8, 8), 2, required("block")))
    assert found.reason == Reason.NO_FEASIBLE_NODE
    assert found.message == "no node has the label block, of which the workers must share one value"


def test_a_node_without_the_label_is_in_no_domain() -> None:
    nodes = [node("free-0", gpu=8), node("free-1", gpu=8), *zoned("a", 8)]
    assert "a comes closest: 1 of 2" in refusal(decided(nodes, 2, required())).message


def test_an_empty_value_is_a_domain_too() -> None:
    assert where(decided(zoned("", 8, 8), 2, required())) == {"-0": 1, "-1": 1}


def test_pods_that_are_there_leave_no_choice() -> None:
    nodes = [*zoned("a", 8, 8, 8), *zoned("b", 8)]
    assert where(decided(nodes, 1, required(ZONE, "a-2"), head=0)) == {"a-0": 1}
    found = refusal(decided(nodes, 2, required(ZONE, "b-0"), head=0))
    assert found.message.startswith(f"the workers must be in {ZONE} b: 1 of 2 workers fit: ")


def test_nodes_that_are_gone_leave_the_choice() -> None:
    assert where(decided(zoned("a", 8), 1, required(ZONE, "gone"), head=0)) == {"a-0": 1}


def test_pods_in_two_domains_are_a_refusal_of_their_own() -> None:
    nodes = [*zoned("a", 8, 8), *zoned("b", 8)]
    found = refusal(decided(nodes, 1, required(ZONE, "a-0", "b-0"), head=0))
    assert found.message.endswith("but those placed already are in a, b")
    bare = refusal(decided([*nodes, node("bare")], 1, required(ZONE, "bare"), head=0))
    assert bare.message.endswith("but those placed already are in none")


def test_surplus_stays_in_the_domain_of_the_minimum() -> None:
    nodes = [*zoned("a", 8, 8, 8), *zoned("b", 8, 8, 8, 8)]
    found = decided(nodes, 2, required(), surplus=3)
    assert isinstance(found, Admitted)
    assert (len(where(found)), found.units) == (4, (0, 1))
    assert {name[0] for name in where(found)} == {"b"}


def test_a_domain_that_holds_the_surplus_as_well_goes_before_a_tighter_one() -> None:
    nodes = [*zoned("a", 8, 8), *zoned("b", 8, 8, 8), *zoned("c", 8, 8, 8, 8)]
    assert {name[0] for name in where(decided(nodes, 2, required(), surplus=1))} == {"b"}


def test_a_surplus_without_any_room_keeps_no_head_from_its_place() -> None:
    found = decided(zoned("a", 0), 0, required(), surplus=2)
    assert isinstance(found, Admitted)
    assert (where(found, "headgroup"), found.units) == ({"a-0": 1}, ())


def test_a_preferred_domain_is_taken_where_there_is_one() -> None:
    topology = Topology(SETS, preferred=ZONE)
    nodes = [*zoned("a", 8, 8, 8), *zoned("b", 8, 8)]
    assert where(decided(nodes, 2, topology)) == {"b-0": 1, "b-1": 1}
    assert len(where(decided(nodes, 5, topology))) == 5
    spare = [*nodes, *zoned("c", 8)]
    asked = gang("a", group("headgroup", 1, HEAD), group("workers", 6, WORKER))
    found = refusal(verdict(asked, spare, topology, used={"c-0": {GPU: 1}}))
    assert found.message.startswith("5 of 6 workers fit: ")


def test_surplus_that_the_preferred_domain_does_not_hold_goes_elsewhere_when_it_asks_alone() -> (
    None
):
    topology = Topology(SETS, preferred=ZONE, occupied=(Occupied("workers", "", "a-0"),))
    nodes = [*zoned("a", 0), *zoned("b", 8)]
    assert where(decided(nodes, 0, topology, head=0, surplus=1)) == {"b-0": 1}


def test_required_and_preferred_together_prefer_within_what_is_required() -> None:
    topology = required(ZONE, preferred=RACK)
    nodes = [
        *zoned("a", 8, rack="r1"),
        *zoned("a", 8, 8, rack="r2"),
        *zoned("b", 8, rack="r1"),
        *zoned("b", 8, rack="r3"),
    ]
    assert where(decided(nodes, 2, topology)) == {"ar2-0": 1, "ar2-1": 1}
    assert {name[:2] for name in where(decided(nodes, 3, topology))} == {"ar"}
    assert (
        "no single topology.kubernetes.io/zone holds"
        in refusal(decided(nodes, 4, topology)).message
    )


def test_one_value_in_two_zones_is_two_racks() -> None:
    nodes = [*zoned("a", 8, rack="r1"), *zoned("b", 8, rack="r1"), *zoned("b", 8, rack="r2")]
    found = where(decided(nodes, 2, required(ZONE, preferred=RACK)))
    assert found == {"br1-0": 1, "br2-0": 1}


def test_all_groups_of_workers_share_the_domain() -> None:
    cpu = shape(cpu=8)
    nodes = [*zoned("a", 8, 8, cpu=4), *zoned("b", 8, 8, cpu=8), *zoned("c", 0, cpu=64)]
    asked = gang("a", group("gpu", 1, shape(gpu=8, cpu=1)), group("cpu", 1, cpu))
    topology = Topology(("cpu", "gpu"), required=ZONE)
    found = verdict(asked, nodes, topology)
    assert {*where(found, "gpu"), *where(found, "cpu")} == {"b-0", "b-1"}


def test_two_gangs_take_a_domain_each() -> None:
    nodes = columns(*zoned("a", 8, 8), *zoned("b", 8, 8))
    both = [
        PendingGang(gang(n).key, 0, 0.0, (group("workers", 2, WORKER),), topology=required())
        for n in ("one", "two")
    ]
    found = [where(each.verdict) for each in run_cycle(both, nodes)]
    assert found == [{"a-0": 1, "a-1": 1}, {"b-0": 1, "b-1": 1}]


def test_running_out_of_steps_is_undecided() -> None:
    """Each domain has room for either group, and for both only the search could tell."""
    nodes = [each for zone in "ab" for each in zoned(zone, 3, 3, 3)]
    asked = gang("a", group("one", 2, shape(gpu=2)), group("two", 2, shape(gpu=2, cpu=1)))
    topology = Topology(("one", "two"), required=ZONE)
    found = refusal(verdict(asked, nodes, topology, Settings(search_steps=0)))
    assert found.reason == Reason.UNDECIDED


def test_messages_stay_within_the_limit() -> None:
    sets = tuple(f"{at:03}-{'x' * 50}" for at in range(40))
    asked = gang("a", *(group(name, 1, shape(gpu=8, cpu=at + 1)) for at, name in enumerate(sets)))
    found = refusal(verdict(asked, zoned("z" * 63, 1), Topology(sets, required=ZONE)))
    assert len(found.message) <= MESSAGE_LIMIT


def test_company_is_minded_within_the_domain() -> None:
    """Workers that keep apart find enough nodes in the larger zone only."""
    apart = PodTerm("host", (require("app", "In", "w"),), ("team",))
    worker = shape(gpu=1, anti_affinity=[apart])
    nodes = [
        node(f"{zone}{at}", gpu=8, labels={ZONE: zone, "host": f"{zone}{at}"})
        for zone, count in (("a", 2), ("b", 3))
        for at in range(count)
    ]
    members = tuple(Member("workers", worker, (("app", "w"),)) for _ in range(3))
    asked = PendingGang(
        gang("a").key, 0, 0.0, (group("workers", 3, worker),), (), members, topology=required()
    )
    [decision] = run_cycle([asked], columns(*nodes), None, ExistingPods(PodIndex()))
    assert where(decision.verdict) == {"b0": 1, "b1": 1, "b2": 1}


def test_spread_is_minded_within_the_domain() -> None:
    """Zone a is the tighter one, but both workers would be on one host there."""
    over_hosts = SpreadConstraint(PodTerm("host", (require("app", "In", "w"),), ("team",)), 1)
    worker = shape(gpu=1, spread=[over_hosts])
    nodes = [
        node(f"{zone}{at}", gpu=3, labels={ZONE: zone, "host": f"{zone}{at}"})
        for zone, hosts in (("a", 1), ("b", 2))
        for at in range(hosts)
    ]
    members = tuple(Member("workers", worker, (("app", "w"),)) for _ in range(2))
    minimum = (group("workers", 2, worker),)
    asked = PendingGang(gang("a").key, 0, 0.0, minimum, (), members, topology=required())
    [decision] = run_cycle([asked], columns(*nodes), None, ExistingPods(PodIndex()))
    assert where(decision.verdict) == {"b0": 1, "b1": 1}

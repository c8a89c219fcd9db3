"""Gangs that start together: one question, and its answer for each of them."""

from dataclasses import replace

from scheduling.admission.together import join, split
from scheduling.cycle import run_cycle
from scheduling.model.gang import SUBMITTER, Group, Occupied, PendingGang, Topology
from scheduling.model.placement import Placement
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from tests.builders import columns, gang, group, node, shape

POD = shape(cpu=1)
ZONE = "topology.kubernetes.io/zone"


def pair(at: float = 0.0, suffix: str = "") -> list[PendingGang]:
    """Return a trainer and its data, of two pods each, under equal names of pod sets."""
    train = gang(f"train{suffix}", group("workers", 2, POD), created=at)
    return [train, gang(f"data{suffix}", group("workers", 2, POD), created=at + 1)]


def joined(gangs: list[PendingGang]) -> PendingGang:
    found = join(gangs)
    assert isinstance(found, PendingGang)
    return found


def pods(verdict: Verdict) -> dict[str, int]:
    assert isinstance(verdict, Admitted)
    return {
        each.pod_set: sum(count for _, count in each.nodes)
        for each in verdict.placement.assignments
    }


def test_a_pair_starts_together_each_with_its_own_pods() -> None:
    mine = pair()
    [decision] = run_cycle([joined(mine)], columns(node("n", cpu=4)))
    answers = split(decision.verdict, mine)
    assert [pods(answers[each.key]) for each in mine] == [{"workers": 2}, {"workers": 2}]


def test_each_gets_no_pods_of_the_other() -> None:
    few, many = gang("few", group("workers", 1, POD)), gang("many", group("workers", 3, POD))
    [decision] = run_cycle([joined([many, few])], columns(node("n", cpu=4)))
    answers = split(decision.verdict, [few, many])
    assert (pods(answers[few.key]), pods(answers[many.key])) == ({"workers": 1}, {"workers": 3})


def test_a_pair_of_which_one_would_fit_waits_whole_with_one_message() -> None:
    mine = pair()
    used = {"n": {"cpu": 1000}}
    [decision] = run_cycle([joined(mine)], columns(node("n", cpu=4), used=used))
    first, second = (split(decision.verdict, mine)[each.key] for each in mine)
    assert isinstance(first, Refusal)
    assert isinstance(second, Refusal)
    assert first.reason is Reason.INSUFFICIENT_RESOURCES
    assert first.message == second.message
    assert "data/workers" in first.message
    named = [each.pod_set for each in (*first.pod_sets, *second.pod_sets)]
    assert named == ["workers", "workers"]


def test_of_two_pairs_for_the_room_of_one_a_whole_one_runs() -> None:
    pairs = [pair(), pair(0.5, "-2")]
    decisions = run_cycle([joined(each) for each in pairs], columns(node("n", cpu=4)))
    found = {each.key: each.verdict for each in decisions}
    answers = [list(split(found[joined(each).key], each).values()) for each in pairs]
    assert all(isinstance(each, Admitted) for each in answers[0])
    assert all(isinstance(each, Refusal) for each in answers[1])


def test_the_oldest_asks_for_all_and_they_come_when_the_last_does() -> None:
    early, late = pair()
    early, late = replace(early, priority=7, duration=60.0), replace(late, setbacks=2, priority=3)
    for order in ([early, late], [late, early]):
        found = joined(order)
        assert (found.key, found.created, found.priority) == (early.key, late.created, 3)
        assert (found.duration, found.setbacks) == (late.duration, 2)


def test_surplus_is_counted_in_each_gangs_own_units() -> None:
    unit = (group("workers", 1, POD),)
    mine = [replace(each, surplus=(unit, unit)) for each in pair()]
    [decision] = run_cycle([joined(mine)], columns(node("n", cpu=7)))
    answers = [split(decision.verdict, mine)[each.key] for each in mine]
    assert [each.units for each in answers if isinstance(each, Admitted)] == [(0, 1), (0,)]
    assert [pods(each)["workers"] for each in answers] == [4, 3]
    assert [each.left_out is None for each in answers if isinstance(each, Admitted)] == [
        True,
        False,
    ]


def test_the_submitter_of_each_goes_with_its_own_gang() -> None:
    mine = [replace(each, minimum=(*each.minimum, Group(SUBMITTER, "", POD, 1))) for each in pair()]
    [decision] = run_cycle([joined(mine)], columns(node("n", cpu=6)))
    answers = split(decision.verdict, mine)
    for each in mine:
        assert pods(answers[each.key]) == {"workers": 2, SUBMITTER: 1}


def test_all_pods_that_ask_for_a_domain_are_in_one() -> None:
    mine = [replace(each, topology=Topology(("workers",), required=ZONE)) for each in pair()]
    apart = [node(name, cpu=2, labels={ZONE: name}) for name in ("a", "b")]
    [refused] = run_cycle([joined(mine)], columns(*apart))
    assert isinstance(refused.verdict, Refusal)
    [admitted] = run_cycle([joined(mine)], columns(*apart, node("c", cpu=4, labels={ZONE: "c"})))
    assert isinstance(admitted.verdict, Admitted)


def own(required: str = "", replica: str = "", sets: tuple[str, ...] = ("workers",)) -> Topology:
    return Topology(sets, required=required, replica=replica, is_own=True)


def domains(verdict: Verdict) -> set[str]:
    assert isinstance(verdict, Admitted)
    return {node for each in verdict.placement.assignments for node, _ in each.nodes}


def test_each_may_have_a_domain_of_its_own() -> None:
    """No domain holds both; nor does it help one that the other has the larger one."""
    mine = [replace(each, topology=own(ZONE)) for each in pair()]
    apart = [node(name, cpu=2, labels={ZONE: name}) for name in ("a", "b")]
    [admitted] = run_cycle([joined(mine)], columns(*apart))
    answers = split(admitted.verdict, mine)
    assert sorted(min(domains(each)) for each in answers.values()) == ["a", "b"]
    assert all(len(domains(each)) == 1 for each in answers.values())
    [refused] = run_cycle([joined(mine)], columns(*apart, used={"b": {"cpu": 1000}}))
    assert isinstance(refused.verdict, Refusal)
    assert "no single topology.kubernetes.io/zone holds the workers of " in refused.verdict.message


def test_each_may_ask_for_another_label_or_none() -> None:
    train, data = pair()
    mine = [replace(train, topology=own(ZONE)), replace(data, topology=own("rack"))]
    one = node("a", cpu=3, labels={ZONE: "z", "rack": "r"})
    two = node("b", cpu=1, labels={ZONE: "z", "rack": "s"})
    answers = split(run_cycle([joined(mine)], columns(one, two))[0].verdict, mine)
    assert (domains(answers[train.key]), domains(answers[data.key])) == ({"a", "b"}, {"a"})
    mine = [replace(train, topology=own("rack")), data]
    answers = split(run_cycle([joined(mine)], columns(one, two))[0].verdict, mine)
    assert domains(answers[train.key]) == {"a"}


def test_a_member_without_workers_of_its_minimum_leaves_the_others_theirs() -> None:
    """Its surplus is tried, and named where it finds no domain."""
    unit = (group("workers", 2, POD),)
    train, data = pair()
    train = replace(train, minimum=(group("head", 1, POD),), surplus=(unit,), topology=own(ZONE))
    data = replace(data, surplus=(unit,))
    mine = [train, data]
    nodes = [node(name, cpu=2, labels={ZONE: name}) for name in ("a", "b")]
    answers = split(run_cycle([joined(mine)], columns(*nodes))[0].verdict, mine)
    assert pods(answers[data.key]) == {"workers": 2}
    assert pods(answers[train.key]) == {"head": 1}


def test_replicas_have_one_label_also_where_each_has_a_domain_of_its_own() -> None:
    train, data = pair()
    mine = [replace(train, topology=own(replica=ZONE)), replace(data, topology=own(replica="rack"))]
    refusal = join(mine)
    assert isinstance(refusal, Refusal)
    said = f"one topology of replicas: train has {ZONE}, data has rack"
    assert refusal.message.endswith(said)
    topology = joined([mine[0], replace(data, topology=own(ZONE))]).topology
    assert topology is not None
    assert (topology.pod_sets, topology.replica) == (("train/workers",), ZONE)
    assert [each.pod_sets for each in topology.apart] == [("data/workers",)]


def test_pods_that_are_somewhere_already_keep_the_name_of_their_gang() -> None:
    there = Topology(("workers",), required=ZONE, occupied=(Occupied("workers", "", "n"),))
    mine = [replace(each, topology=there) for each in pair()]
    topology = joined(mine).topology
    assert topology is not None
    assert topology.pod_sets == ("train/workers", "data/workers")
    assert [each.pod_set for each in topology.occupied] == ["data/workers", "train/workers"]


def test_what_must_be_the_same_and_is_not_is_told_with_both_values() -> None:
    train, data = pair()
    refusal = join([train, replace(data, queue="other")])
    assert isinstance(refusal, Refusal)
    assert refusal.reason is Reason.MISCONFIGURED
    assert refusal.message.endswith("one queue: train has default, data has other")
    by_zone = replace(train, topology=Topology(("workers",), required=ZONE))
    by_rack = replace(data, topology=Topology(("workers",), preferred="rack"))
    refusal = join([by_zone, by_rack])
    assert isinstance(refusal, Refusal)
    assert refusal.message.endswith(f"train has required {ZONE}, data has preferred rack")


def test_one_gang_alone_is_answered_as_without_a_group() -> None:
    [alone, _] = pair()
    on = columns(node("n", cpu=4))
    [decision] = run_cycle([joined([alone])], on)
    [plain] = run_cycle([alone], on)
    assert split(decision.verdict, [alone]) == {alone.key: plain.verdict}
    assert isinstance(plain.verdict, Admitted)
    assert plain.verdict.placement != Placement()

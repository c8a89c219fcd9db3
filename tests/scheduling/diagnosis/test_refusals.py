"""What a waiting gang is told."""

import pytest

from scheduling.cycle import run_cycle
from scheduling.diagnosis import partial_fit
from scheduling.diagnosis.refusals import undecided
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import Group
from scheduling.model.verdict import MESSAGE_LIMIT, Admitted, PodSetRefusal, Reason, Refusal
from scheduling.placement.independent import displaced
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import GPU, columns, gang, group, node, shape, taint

GPUS = shape(cpu=8, gpu=8)
WORKERS = group("gpu-workers", 4, GPUS)


def refusal(world: NodeSnapshot, *groups: Group) -> Refusal:
    [decision] = run_cycle([gang("g", *groups)], world)
    assert isinstance(decision.verdict, Refusal)
    return decision.verdict


def gpus_used(**amounts: int) -> dict[str, dict[str, int]]:
    """Return how many GPUs are in use by node."""
    return {name: {GPU: amount} for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("world", "groups", "message"),
    [
        pytest.param(
            columns(*(node(n, gpu=8) for n in "abcde"), used=gpus_used(c=4, d=4, e=4)),
            [WORKERS],
            "2 of 4 gpu-workers fit: each needs 8 nvidia.com/gpu on one node, the gang 32 in all; "
            "28 are free, and those that fit leave 12, at most 4 on one node",
            id="some fit, and the rest is scattered",
        ),
        pytest.param(
            columns(node("a", cpu=8), used={"a": {"cpu": 5_000}}),
            [group("headgroup", 1, shape(cpu=1)), group("w", 4, shape(cpu=1))],
            "2 of 4 w fit beside headgroup: each needs 1 cpu on one node, the gang 5 in all; "
            "3 are free, and those that fit leave 0",
            id="the head is counted",
        ),
        pytest.param(
            columns(
                node("a", cpu=3, memory="3Gi"), node("b", cpu=1), node("c", cpu=2, memory="1Gi")
            ),
            [group("headgroup", 1, shape(cpu=2, memory="3Gi")), group("w", 1, shape(cpu=3))],
            "0 of 1 w fits beside headgroup: it needs 3 cpu on one node, the gang 5 in all; "
            "6 are free, and those that fit leave 4, at most 2 on one node",
            id="what the other takes is gone, where it is",
        ),
        pytest.param(
            columns(node("a", cpu=2), node("b", cpu=2), used={"b": {"cpu": 1_000}}),
            [group("workers", 2, shape(cpu="1500m"))],
            "1 of 2 workers fit: each needs 1500m cpu on one node, the gang 3 in all; "
            "3 are free, and those that fit leave 1500m, at most 1 on one node",
            id="cpu is written in milli where it is not whole",
        ),
        pytest.param(
            columns(node("a", memory="16Gi"), used={"a": {"memory": 384 * 2**20}}),
            [group("head", 1, shape(memory="16Gi"))],
            "0 of 1 head fits: it needs 16Gi memory on one node; "
            "15.6Gi are free, at most 15.6Gi on one node",
            id="memory is written in Gi, what is free rounded down",
        ),
        pytest.param(
            columns(node("a", memory="17Gi"), used={"a": {"memory": 2**30}}),
            [group("head", 1, shape(memory=2**34 + 1))],
            "0 of 1 head fits: it needs 16.1Gi memory on one node; "
            "16Gi are free, at most 16Gi on one node",
            id="what is needed is rounded up",
        ),
        pytest.param(
            columns(node("a", pods=5), used={"a": {"pods": 2}}),
            [group("workers", 5, shape(cpu="1m"))],
            "3 of 5 workers fit: each needs 1 pod slot on one node, the gang 5 in all; "
            "3 are free, and those that fit leave 0",
            id="pod slots are named",
        ),
        pytest.param(
            columns(
                node("a", gpu=8, taints=(taint("x"),)),
                node("b", gpu=8, taints=(taint("x"),)),
                node("c", gpu=8),
            ),
            [group("gpu-workers", 4, shape(gpu=8, selector={"pool": "a"}))],
            "0 of 4 gpu-workers fit: no node is feasible for them "
            "(3 nodes: 2 have an untolerated taint, 1 does not match the node selector); "
            "no node has pool=a (no node has this label)",
            id="no node is feasible",
        ),
        pytest.param(
            columns(),
            [group("head", 1, GPUS)],
            "0 of 1 head fits: no node is feasible for it (there are no nodes)",
            id="there are no nodes",
        ),
        pytest.param(
            columns(node("a", gpu=8), node("b", gpu=8, unschedulable=True), used=gpus_used(a=4)),
            [group("gpu-workers", 2, GPUS)],
            "0 of 2 gpu-workers fit: each needs 8 nvidia.com/gpu on one node, the gang 16 in all; "
            "4 are free, at most 4 on one node (left out: 1 is cordoned)",
            id="nodes left out are counted",
        ),
        pytest.param(
            columns(node("a", cpu=8, gpu=2), used={"a": {"cpu": 4_000, GPU: 1}}),
            [group("head", 1, shape(cpu=8)), group("gpu-workers", 2, shape(gpu=1))],
            "1 of 2 gpu-workers fit: each needs 1 nvidia.com/gpu on one node, the gang 2 in all; "
            "1 is free, and those that fit leave 0. "
            "0 of 1 head fits: it needs 8 cpu on one node; 4 are free, at most 4 on one node",
            id="every pod set that is short has its sentence",
        ),
        pytest.param(
            columns(node("a", cpu=10), used={"a": {"cpu": 2_000}}),
            [group("head", 1, shape(cpu=4)), group("workers", 2, shape(cpu=3))],
            "1 of 2 workers fit beside head: each needs 3 cpu on one node, the gang 10 in all; "
            "8 are free, and those that fit leave 1, at most 1 on one node",
            id="they fit alone but not together",
        ),
        pytest.param(
            columns(
                node("a", cpu=8, gpu=4),
                node("b", cpu=8, gpu=3),
                node("c", cpu=1, gpu=3),
                used=gpus_used(a=1),
            ),
            [group("workers", 1, shape(cpu=8, gpu=4))],
            "0 of 1 workers fits: it needs 4 nvidia.com/gpu on one node; "
            "9 are free, at most 3 on one node",
            id="the resource that stops the most nodes is named",
        ),
        pytest.param(
            columns(node("a", cpu=8), node("b", cpu=3), used={"a": {"cpu": 12_000}}),
            [group("head", 1, shape(cpu=4))],
            "0 of 1 head fits: it needs 4 cpu on one node; 3 are free, at most 3 on one node",
            id="an overcommitted node takes nothing from what others have free",
        ),
        pytest.param(
            columns(node("a", cpu=4), used={"a": {"cpu": 1_000}}),
            [group("x", 2, shape(cpu=1)), group("y", 2, shape(cpu=1))],
            "1 of 2 y fit beside x: each needs 1 cpu on one node, the gang 4 in all; "
            "3 are free, and those that fit leave 0",
            id="pod sets of one shape share what fits in order of name",
        ),
        pytest.param(
            columns(
                node("a", cpu=9, labels={"pool": "x"}), node("b", cpu=9), used={"a": {"cpu": 6_000}}
            ),
            [group("head", 1, shape(cpu=1)), group("w", 4, shape(cpu=1, selector={"pool": "x"}))],
            "3 of 4 w fit: each needs 1 cpu on one node, the gang 4 in all; 3 are free, and those "
            "that fit leave 0 (left out: 1 does not match the node selector)",
            id="what goes to other nodes is not counted",
        ),
        pytest.param(
            columns(node("a", cpu=16), used={"a": {"cpu": 10_000}}),
            [group(name, 2, shape(cpu=1, memory=at)) for at, name in enumerate("abcdef")],
            "0 of 2 d fit beside a, b and c: each needs 1 cpu on one node, the gang 12 in all; "
            "6 are free, and those that fit leave 0. "
            "0 of 2 e fit beside a, b and c: each needs 1 cpu on one node, the gang 12 in all; "
            "6 are free, and those that fit leave 0. "
            "0 of 2 f fit beside a, b and c: each needs 1 cpu on one node, the gang 12 in all; "
            "6 are free, and those that fit leave 0",
            id="several sets are short beside the others",
        ),
    ],
)
def test_message(world: NodeSnapshot, groups: list[Group], message: str) -> None:
    """In numbers, in the words of the design."""
    assert refusal(world, *groups).message == message


def test_numbers_stand_beside_the_message() -> None:
    """Per pod set, for status and for tools."""
    nodes = (node("a", gpu=32), node("b", gpu=8), node("c", unschedulable=True))
    world = columns(*nodes, used=gpus_used(a=20, b=4))
    verdict = refusal(world, group("head", 1, shape(cpu=1, gpu=1)), WORKERS)
    assert verdict.reason == Reason.INSUFFICIENT_RESOURCES
    assert [(each.pod_set, each.fit, each.wanted) for each in verdict.pod_sets] == [
        ("gpu-workers", 1, 4),
        ("head", 1, 1),
    ]
    assert verdict.pod_sets[0] == PodSetRefusal(
        pod_set="gpu-workers",
        wanted=4,
        fit=1,
        requests=GPUS.requests,
        resource=GPU,
        each=8,
        needed=33,
        free=16,
        left=7,
        largest=4,
        rejections=(("NodeUnschedulable", 1), ("NodeResourcesFit", 1)),
    )


def test_no_feasible_node_has_its_own_reason() -> None:
    """It is not a lack of room, and no room will help."""
    assert (
        refusal(columns(node("a", unschedulable=True)), WORKERS).reason == Reason.NO_FEASIBLE_NODE
    )


def test_a_message_is_bounded_and_says_what_it_left_out() -> None:
    """Fifty pod sets do not make fifty sentences."""
    groups = [group(f"workers-{at:02}", 2, shape(cpu=at + 1, gpu=1)) for at in range(50)]
    message = refusal(columns(node("a", cpu=1)), *groups).message
    assert len(message) <= MESSAGE_LIMIT
    assert message.endswith("more")


def test_a_message_of_one_endless_sentence_is_cut() -> None:
    """Names can be long; the limit holds all the same."""
    message = refusal(columns(node("a")), group("w" * 2000, 1, GPUS)).message
    assert len(message) == MESSAGE_LIMIT
    assert message.endswith("…")


def test_equal_gangs_in_one_room_share_one_refusal() -> None:
    """A thousand equal gangs are explained once."""
    world = columns(node("a"))
    first, second = run_cycle([gang("a", WORKERS), gang("b", WORKERS)], world)
    assert first.verdict is second.verdict


def test_a_message_does_not_change_while_the_room_does_not() -> None:
    """No event storm: a new cycle on an equal world says the same words."""
    said = {refusal(columns(node("a", gpu=4), node("b", gpu=4)), WORKERS).message for _ in range(3)}
    assert len(said) == 1


def with_claims(world: NodeSnapshot, *resources: str) -> NodeSnapshot:
    arrays = world.resources, world.allocatable, world.used
    return NodeSnapshot(world.traits, *arrays, claimable=frozenset(resources))


def test_what_a_class_of_devices_may_give_is_not_refused_for_good() -> None:
    """Only a node that has none of the resource is asked for its devices, and only if feasible."""
    plugin, bare = node("plugin", gpu=4), node("bare")
    workers = group("workers", 2, shape(cpu=1, gpu=4))
    said = refusal(with_claims(columns(plugin, bare), GPU), workers)
    assert said.reason is Reason.UNSUPPORTED
    assert said.message == (
        "not supported by Muster; workers: nvidia.com/gpu through a DeviceClass (only devices in a "
        "node's status.allocatable are counted: ask for others by claim, or add nodes that list "
        "them there); "
        "1 of 2 workers fit: each needs 4 nvidia.com/gpu on one node, the gang 8 in all; "
        "4 are free, and those that fit leave 0"
    )
    assert said.pod_sets[0].fit == 1
    for world in (
        with_claims(columns(plugin, node("bare", taints=(taint("reserved"),))), GPU),
        with_claims(columns(plugin), GPU),
    ):
        assert refusal(world, workers).reason is Reason.INSUFFICIENT_RESOURCES
    of_others = with_claims(columns(plugin, bare), "example.com/other")
    assert refusal(of_others, workers).reason is Reason.NEVER_FITS
    assert refusal(with_claims(columns(bare), GPU), workers).reason is Reason.UNSUPPORTED


def test_a_search_that_was_given_up_tells_of_capacity_where_it_lacks_and_else_of_constraints() -> (
    None
):
    room = FreeCapacity.of(columns(node("a", cpu=2)))
    lacking = undecided((group("w", 3, shape(cpu=1)),), room).message
    assert "2 of 3 w fit: each needs 1 cpu on one node" in lacking
    assert "capacity suffices" not in lacking
    fitting = undecided((group("w", 2, shape(cpu=1)),), room).message
    assert "capacity suffices, but affinity or spread" in fitting


def test_a_resource_that_no_node_offers_is_not_told_as_zero_that_are_free() -> None:
    world = with_claims(columns(node("a", cpu=8)), GPU)
    said = refusal(world, group("w", 1, shape(gpu=1))).message
    assert said.endswith("it needs 1 nvidia.com/gpu on one node; no node offers any")


def test_a_gang_that_device_plugins_serve_is_admitted_whatever_classes_there_are() -> None:
    workers = group("workers", 1, shape(cpu=1, gpu=4))
    world = with_claims(columns(node("plugin", gpu=4), node("bare")), GPU)
    [decision] = run_cycle([gang("g", workers)], world)
    assert isinstance(decision.verdict, Admitted)
    assert decision.verdict.placement.assignments[0].nodes == (("plugin", 1),)


def test_a_gang_of_many_kinds_is_explained_without_a_look_at_each_pair_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anybody can make one of 256 kinds, and all others wait for the explanation."""
    pairs = []

    def counted(*args: object) -> object:
        pairs.append(args)
        return displaced(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(partial_fit, "displaced", counted)
    monkeypatch.setattr(partial_fit, "_meets", lambda *pair: pairs.append(pair))
    kinds = [group(f"w{at:02}", 1, shape(cpu=1 + at)) for at in range(60)]
    told = refusal(columns(*(node(f"n{at}", cpu=64) for at in range(9))), *kinds)
    assert len(told.pod_sets) == 60
    assert len(pairs) <= 300

"""One cycle over gangs whose pods claim devices: who is admitted, in which waves, and why not."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import NodeFacts, Settings, next_cycle
from scheduling.devices.allocator import allocate
from scheduling.devices.node_devices import LOOK, NodeDevices
from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex, Pending
from scheduling.devices.outcome import Allocated, Doubt
from scheduling.devices.pools import by_pool
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.in_use import Share
from scheduling.model.devices.resource_claim import ClaimSpec, DeviceRequest
from scheduling.model.devices.resource_slice import Device, DeviceContent, DeviceID
from scheduling.model.devices.selectors import Answer
from scheduling.model.gang import Group, PendingGang
from scheduling.model.pod import PodShape
from scheduling.model.shape.node_restrictions import with_claims
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from scheduling.placement.claimed_devices import DEVICE_STEPS
from scheduling.queueing.queues import one_queue
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import columns, gang, group, node, shape
from tests.scheduling.devices.builders import (
    DRIVER,
    RULES,
    TextSelectors,
    claim,
    device,
    exactly,
    shared,
    slice_of,
    some,
)

ONE = claim(exactly())
X, Y = device("x", type="X"), device("y", type="Y")
CPU = shape(cpu=1)


def claiming(*claims: ClaimSpec, of: PodShape = CPU) -> PodShape:
    return with_claims(of, claims, ())


def facts(
    devices: Mapping[str, Iterable[Device]],
    *,
    taken: Mapping[str, Iterable[str]] | None = None,
    pending: Mapping[str, Pending] | None = None,
    edition: int = 0,
) -> DeviceFacts:
    """What is known of devices by node, with the names of those that are taken."""
    slices = [slice_of(each, name) for name, each in devices.items()]
    ids = [DeviceID(DRIVER, at, each) for at, names in (taken or {}).items() for each in names]
    return DeviceFacts(slices, by_pool(ids), RULES, edition, pending or {})


def gpus(count: int) -> list[Device]:
    return [device(f"gpu-{at}") for at in range(count)]


def decide(
    world: NodeSnapshot, known: DeviceFacts, *gangs: PendingGang, memory: Memory | None = None
) -> tuple[dict[str, Verdict], Memory]:
    decisions, after = next_cycle(one_queue(gangs), world, memory, facts=NodeFacts(devices=known))
    return {each.key.name: each.verdict for each in decisions}, after


def verdicts(world: NodeSnapshot, known: DeviceFacts, *gangs: PendingGang) -> dict[str, Verdict]:
    return decide(world, known, *gangs)[0]


def nodes_of(verdict: Verdict) -> dict[str, dict[str, int]]:
    """Pods by pod set and node."""
    assert isinstance(verdict, Admitted), verdict
    found: dict[str, dict[str, int]] = {}
    for each in verdict.placement.assignments:
        on = found.setdefault(each.pod_set, {})
        for name, count in each.nodes:
            on[name] = on.get(name, 0) + count
    return found


def workers(name: str, count: int, of: PodShape, created: float = 0.0) -> PendingGang:
    return gang(name, group("head", 1, CPU), group("workers", count, of), created=created)


def test_of_two_gangs_on_devices_for_one_the_second_waits_in_numbers() -> None:
    world, known = columns(node("a"), node("b")), facts({"a": gpus(2), "b": gpus(2)})
    found = verdicts(
        world, known, workers("first", 3, claiming(ONE)), workers("second", 3, claiming(ONE), 1.0)
    )
    assert sum(nodes_of(found["first"])["workers"].values()) == 3
    second = found["second"]
    assert isinstance(second, Refusal)
    assert second.reason is Reason.INSUFFICIENT_RESOURCES
    assert second.message == (
        "1 of 3 workers fit by their claims: each claims 1 of gpu, of which nodes have 4, 0 are "
        "taken and 3 promised"
    )


def test_what_is_lacking_of_shared_devices_is_said_in_amounts() -> None:
    gib = 1000 * 2**30
    pod = claiming(claim(some(memory=16 * gib, cores=1500)))
    taken = Share(DRIVER, "a", "x", "1", (("memory", gib),))
    known = facts({"a": [shared("x", memory=40 * gib, cores=4000), shared("y")]})
    found = verdicts(
        columns(node("a")), replace(known, taken=by_pool([taken])), workers("g", 3, pod)
    )
    assert isinstance(found["g"], Refusal)
    assert found["g"].message == (
        "2 of 3 workers fit by their claims: each claims 1 (cores 1500m, memory 16Gi) of gpu, of "
        "which nodes have 2, 0 are taken, 1 in part, and 0 promised"
    )


def test_pods_go_where_their_devices_are_and_others_anywhere() -> None:
    found = verdicts(
        columns(node("a"), node("b")), facts({"b": gpus(2)}), workers("g", 2, claiming(ONE))
    )
    assert nodes_of(found["g"])["workers"] == {"b": 2}


def test_devices_and_room_bound_the_pods_of_a_node_together() -> None:
    world = columns(node("a", cpu=2), node("b", cpu=8))
    known = facts({"a": gpus(8), "b": gpus(1)})
    assert isinstance(verdicts(world, known, workers("g", 3, claiming(ONE)))["g"], Admitted)
    refused = verdicts(world, known, workers("g", 4, claiming(ONE)))["g"]
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.INSUFFICIENT_RESOURCES


def test_pods_on_their_way_take_devices() -> None:
    world, one = columns(node("a")), gang("g", group("w", 1, claiming(ONE)))
    for coming, answer in ((1, Admitted), (2, Refusal)):
        known = facts({"a": gpus(2)}, pending={"a": (((ONE,), coming),)})
        assert isinstance(verdicts(world, known, one)["g"], answer)


def test_a_node_with_claims_of_others_that_cannot_be_counted_is_left_open() -> None:
    pair = claim(exactly(name="a"), exactly(name="b"), match="numa")
    known = facts(
        {"a": [device(f"d{at}", numa=str(at % 2)) for at in range(8)]},
        pending={"a": (((ONE,), 1),)},
    )
    found = verdicts(columns(node("a")), known, gang("g", group("w", 1, claiming(pair))))["g"]
    assert isinstance(found, Refusal)
    assert found.reason is Reason.UNDECIDED


def test_claims_of_others_that_are_equal_come_in_any_order() -> None:
    """Counting sees eight devices; there are three pairs on one side, and one device is left."""
    pair = claim(exactly(name="a"), exactly(name="b"), match="numa")
    sides = [device(f"d{at}", numa="0" if at < 7 else "1") for at in range(8)]
    for coming, answer in ((2, Admitted), (3, Refusal)):
        known = facts({"a": sides}, pending={"a": (((pair,), coming),)})
        found = verdicts(columns(node("a")), known, gang("g", group("w", 1, claiming(pair))))["g"]
        assert isinstance(found, answer)
    assert isinstance(found, Refusal)
    assert found.reason is Reason.INSUFFICIENT_RESOURCES


def test_waves_are_written_down_where_the_order_matters() -> None:
    """Whoever takes X or Y comes after the pod that wants X alone."""
    only_x = claiming(claim(exactly("type=X")))
    either = claiming(claim((exactly("type=X", name="x"), exactly("type=Y", name="y"))))
    one = gang("g", group("either", 1, either), group("only", 1, only_x))
    verdict = verdicts(columns(node("a")), facts({"a": [X, Y]}), one)["g"]
    assert isinstance(verdict, Admitted)
    waves = {each.pod_set: each.wave for each in verdict.placement.assignments}
    assert waves == {"only": 0, "either": 1}


def test_a_refusal_stands_until_devices_change() -> None:
    world, one = columns(node("a")), gang("g", group("w", 2, claiming(ONE)))
    taken = {"a": ["gpu-0"]}
    refused, memory = decide(world, facts({"a": gpus(2)}, taken=taken), one)
    assert isinstance(refused["g"], Refusal)
    assert memory.kept == 0
    again, memory = decide(world, facts({"a": gpus(2)}, taken=taken), one, memory=memory)
    assert again == refused
    assert memory.kept == 1
    freed, memory = decide(world, facts({"a": gpus(2)}, edition=1), one, memory=memory)
    assert isinstance(freed["g"], Admitted)


def test_a_refusal_does_not_outlive_pods_that_were_on_their_way() -> None:
    world, one = columns(node("a")), gang("g", group("w", 2, claiming(ONE)))
    coming = facts({"a": gpus(2)}, pending={"a": (((ONE,), 1),)})
    refused, memory = decide(world, coming, one)
    assert isinstance(refused["g"], Refusal)
    assert isinstance(decide(world, facts({"a": gpus(2)}), one, memory=memory)[0]["g"], Admitted)


def test_as_much_of_the_surplus_starts_as_there_are_devices_for() -> None:
    unit = (group("w", 1, claiming(ONE)),)
    one = gang("g", group("w", 2, claiming(ONE)), surplus=(unit,) * 4)
    verdict = verdicts(columns(node("a")), facts({"a": gpus(5)}), one)["g"]
    assert isinstance(verdict, Admitted)
    assert verdict.surplus == 3
    assert verdict.left_out is not None
    assert "0 of 1 w fits by their claims" in verdict.left_out.message


def test_pods_that_share_a_claim_go_to_one_node_and_take_its_devices_once() -> None:
    world, known = columns(node("a", cpu=3), node("b", cpu=9)), facts({"a": gpus(1), "b": gpus(2)})
    gangs = [
        gang("ours", group("w", 4, sharing()), created=0.0),
        *(gang(name, group("w", 1, claiming(ONE)), created=1.0) for name in ("c", "d", "e")),
    ]
    found = verdicts(world, known, *gangs)
    assert nodes_of(found["ours"]) == {"w": {"b": 4}}
    assert sorted(next(iter(nodes_of(found[name])["w"])) for name in "cd") == ["a", "b"]
    refused = found["e"]
    assert isinstance(refused, Refusal)
    assert "nodes have 3, 0 are taken and 3 promised" in refused.message


def test_surplus_that_shares_a_claim_waits_until_it_is_allocated() -> None:
    """Without a minimum that shares it one unit begins."""
    unit, cpu = (group("w", 1, sharing()),), group("head", 1, CPU)
    for minimum, placed in ((2, 0), (0, 4)):
        groups = [cpu, group("w", minimum, sharing())][: 2 if minimum else 1]
        one = gang("g", *groups, surplus=(unit,) * 4)
        verdict = verdicts(columns(node("a")), facts({"a": gpus(1)}), one)["g"]
        assert isinstance(verdict, Admitted)
        assert verdict.surplus == placed
        if not placed:
            assert verdict.left_out is not None
            assert verdict.left_out.message.endswith(Doubt.SHARED)


def sharing() -> PodShape:
    return with_claims(CPU, (ONE,), (), ("ours",))


@pytest.mark.parametrize(
    ("asked", "reason", "said"),
    [
        (DeviceRequest("r", "lost"), Reason.NO_FEASIBLE_NODE, "DeviceClass lost does not exist"),
        (exactly("error"), Reason.NO_FEASIBLE_NODE, "a selector fails on a device"),
        (exactly("unknown"), Reason.UNSUPPORTED, "selector unknown"),
    ],
)
def test_what_cannot_be_allocated_is_named(asked: DeviceRequest, reason: Reason, said: str) -> None:
    one = gang("g", group("w", 1, claiming(claim(asked))))
    found = verdicts(columns(node("a")), facts({"a": gpus(1)}), one)["g"]
    assert isinstance(found, Refusal)
    assert found.reason is reason
    assert said in found.message


def test_without_steps_it_is_left_open() -> None:
    world, one = columns(node("a")), gang("g", group("w", 1, claiming(ONE)))

    answers, _ = next_cycle(
        one_queue([one]),
        world,
        None,
        Settings(search_steps=50),
        facts=NodeFacts(devices=facts({"a": gpus(200)})),
    )
    [found] = (each.verdict for each in answers)
    assert isinstance(found, Refusal)
    assert found.reason is Reason.UNDECIDED


def test_where_devices_are_not_known_a_gang_that_claims_some_is_left_open() -> None:
    one = gang("g", group("w", 1, claiming(ONE)))
    [decision] = next_cycle(one_queue([one]), columns(node("a")), None)[0]
    assert isinstance(decision.verdict, Refusal)
    assert decision.verdict.reason is Reason.UNDECIDED


# ---- what is admitted gets its devices, in whatever order its waves allow

SPECS = [
    ONE,
    claim(exactly(count=2)),
    claim(exactly("type=X")),
    claim((exactly("type=X", name="x"), exactly("type=Y", name="y"))),
    claim(exactly(name="a"), exactly(name="b"), match="numa"),
]


@st.composite
def worlds(draw: st.DrawFn) -> tuple[dict[str, list[Device]], list[PendingGang]]:
    attributes = st.tuples(st.sampled_from("XY"), st.sampled_from("01"))
    devices = {
        name: [
            device(f"d{at}", type=kind, numa=numa)
            for at, (kind, numa) in enumerate(draw(st.lists(attributes, max_size=4)))
        ]
        for name in ("a", "b")
    }
    groups = st.lists(st.tuples(st.sampled_from(SPECS), st.integers(1, 2)), min_size=1, max_size=2)
    gangs = [
        gang(
            f"g{at}",
            *(_group(number, *each) for number, each in enumerate(draw(groups))),
            created=at,
        )
        for at in range(draw(st.integers(1, 3)))
    ]
    return devices, gangs


def _group(number: int, spec: ClaimSpec, count: int) -> Group:
    return group(f"w{number}", count, claiming(spec))


@given(worlds(), st.randoms(use_true_random=False))
def test_all_pods_that_are_admitted_get_devices_in_any_order(
    world: tuple[dict[str, list[Device]], list[PendingGang]], random: Random
) -> None:
    devices, gangs = world
    known = facts(devices)
    found = verdicts(columns(node("a"), node("b")), known, *gangs)
    claims = {
        (one.key.name, each.pod_set): each.shape.restrictions.claims
        for one in gangs
        for each in one.groups()
    }
    index = NodeDevicesIndex(known)
    on = {name: index.of(node(name)) for name in ("a", "b")}
    for name, pods in shuffled(found, random):
        assert name in on
        on[name] = after(on[name], claims[pods])


def shuffled(found: Mapping[str, Verdict], random: Random) -> list[tuple[str, tuple[str, str]]]:
    """The nodes of all pods with gang and pod set, in an order that keeps to each gang's waves."""
    gangs = []
    for name, verdict in found.items():
        if isinstance(verdict, Admitted):
            pods = [
                (each.wave, at, (name, each.pod_set))
                for each in verdict.placement.assignments
                for at, count in each.nodes
                for _ in range(count)
            ]
            random.shuffle(pods)
            gangs.append(sorted(pods, key=lambda pod: pod[0]))
    order = [at for at, pods in enumerate(gangs) for _ in pods]
    random.shuffle(order)
    queues = [iter(pods) for pods in gangs]
    return [(pod[1], pod[2]) for at in order for pod in [next(queues[at])]]


def after(devices: NodeDevices, claims: tuple[ClaimSpec, ...]) -> NodeDevices:
    given = allocate(claims, devices.pools, devices.in_use, RULES, StepBudget(10_000))
    assert isinstance(given, Allocated), given
    return NodeDevices(devices.pools, devices.in_use.plus(given.given))


# ---- what is known from one cycle to the next


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.booleans()), max_size=8))
def test_what_is_taken_over_is_what_is_worked_out_anew(
    changes: list[tuple[str, int, bool]],
) -> None:
    """Each change gives a node so many devices, and takes the first of them or none."""
    devices: dict[str, list[Device]] = {}
    taken: dict[str, list[str]] = {}
    index: NodeDevicesIndex | None = None
    for edition, (name, count, takes) in enumerate(changes):
        if count != len(devices.get(name, ())):
            devices[name] = gpus(count)
        taken[name] = ["gpu-0"] if takes else []
        # Slices that did not change are the same objects, as an index of facts keeps them.
        known = facts(devices, taken=taken, edition=edition)
        index = index.renewed(known) if index else NodeDevicesIndex(known)
        anew = NodeDevicesIndex(known)
        for each in ("a", "b", "c"):
            assert index.of(node(each)) == anew.of(node(each))


def test_a_node_of_which_nothing_changed_is_the_same_object() -> None:
    known = facts({"a": gpus(1), "b": gpus(1)})
    first = NodeDevicesIndex(known)
    a, b = (first.of(node(each)) for each in ("a", "b"))
    taking = DeviceFacts(known.slices, by_pool([DeviceID(DRIVER, "b", "gpu-0")]), RULES, 1)
    second = first.renewed(taking)
    assert second.of(node("a")) is a
    assert second.of(node("b")) != b


# ---- many nodes


def test_where_the_first_nodes_do_not_suffice_all_are_looked_at() -> None:
    """The devices are on the last of 70 nodes."""
    names = [f"n{at:02}" for at in range(70)]
    world = columns(*(node(each) for each in names))
    found = verdicts(world, facts({"n69": gpus(2)}), gang("g", group("w", 2, claiming(ONE))))
    assert nodes_of(found["g"]) == {"w": {"n69": 2}}
    found = verdicts(world, facts({"n69": gpus(1)}), gang("g", group("w", 2, claiming(ONE))))
    assert isinstance(found["g"], Refusal)
    assert found["g"].message.startswith("1 of 2 w fit by their claims")


def test_a_gang_in_waves_among_the_first_nodes_is_placed_at_once_elsewhere() -> None:
    names = [f"n{at:02}" for at in range(70)]
    only_x = claiming(claim(exactly("type=X")))
    either = claiming(claim((exactly("type=X", name="x"), exactly("type=Y", name="y"))))
    one = gang("g", group("either", 1, either), group("only", 1, only_x))
    known = facts({"n00": [X, Y], "n69": [X]})
    verdict = verdicts(columns(*map(node, names)), known, one)["g"]
    assert isinstance(verdict, Admitted)
    assert {each.wave for each in verdict.placement.assignments} == {0}
    assert nodes_of(verdict) == {"either": {"n69": 1}, "only": {"n00": 1}}


def test_128_devices_on_each_of_5000_nodes_are_bounded() -> None:
    """A gang that fits does not need to see all; how much a cycle looks at is bounded by steps."""
    fits = gang("fits", group("w", 300, claiming(ONE)))
    world, known, selectors = _with_128_devices_each(5_000)
    found, _ = decide(world, known, fits, *_wanting_other_devices())
    assert isinstance(found.pop("fits"), Admitted)
    assert {each.reason for each in found.values() if isinstance(each, Refusal)} == {
        Reason.UNDECIDED
    }
    assert selectors.asked <= Settings().cycle_search_steps / (DEVICE_STEPS * LOOK) * 2


def test_taints_on_64_devices_of_each_of_5000_nodes_are_bounded() -> None:
    """Most nodes have one device that is not tainted; some have none left."""
    names = [f"n{at:04}" for at in range(5_000)]
    sick = [device(f"gpu-{at:02}", tainted=at > 0) for at in range(64)]
    selectors = _Counting()
    known = facts(dict.fromkeys(names, sick), taken={each: ["gpu-00"] for each in names[:5]})
    known = replace(known, rules=Rules(RULES.classes, selectors, RULES.features))
    world = columns(*(node(each, cpu=200) for each in names))
    fits = gang("fits", group("w", 20, claiming(ONE)))
    pair = claiming(claim(exactly(count=2)))
    pairs = [gang(f"pair-{at}", group("w", 1, pair), created=at + 1.0) for at in range(20)]
    found, _ = decide(world, known, fits, *pairs)
    usual = nodes_of(found.pop("fits"))["w"]
    assert set(usual.values()) == {1}
    assert not usual.keys() & set(names[:5])
    assert not any(isinstance(each, Admitted) for each in found.values())
    assert selectors.asked <= Settings().cycle_search_steps / (DEVICE_STEPS * LOOK) * 2


def test_cycles_go_on_where_the_steps_of_one_were_used_up() -> None:
    """What was looked at is known from then on, so that each cycle gets further."""
    gangs = _wanting_other_devices()
    world, known, selectors = _with_128_devices_each(400)
    found, memory = decide(world, known, *gangs)
    assert any(each.reason is Reason.UNDECIDED for each in refusals(found))
    assert memory.asks_again_in < inf
    for _ in range(5):
        found, memory = decide(world, known, *gangs, memory=memory)
    assert memory.asks_again_in == inf
    assert {each.reason for each in refusals(found)} == {Reason.INSUFFICIENT_RESOURCES}
    asked = selectors.asked
    decide(world, known, workers("new", 1, gangs[0].minimum[0].shape), memory=memory)
    assert selectors.asked - asked < 400 * 128 / 10, "what is known is not asked again"


def refusals(found: Mapping[str, Verdict]) -> list[Refusal]:
    return [each for each in found.values() if isinstance(each, Refusal)]


def _wanting_other_devices() -> list[PendingGang]:
    none = claiming(claim(exactly("type=X")))
    return [gang(f"no-{at}", group("w", 1, none), created=at + 1.0) for at in range(20)]


def _with_128_devices_each(nodes: int) -> tuple[NodeSnapshot, DeviceFacts, "_Counting"]:
    names = [f"n{at:04}" for at in range(nodes)]
    known = facts(dict.fromkeys(names, gpus(128)), taken={each: ["gpu-0"] for each in names[:100]})
    selectors = _Counting()
    rules = Rules(RULES.classes, selectors, RULES.features)
    world = columns(*(node(each, cpu=200) for each in names))
    return world, DeviceFacts(known.slices, known.taken, rules, 0), selectors


class _Counting(TextSelectors):
    """Counts how often a selector is asked of a device."""

    def __init__(self) -> None:
        self.asked = 0

    def evaluate(self, selector: str, device: DeviceContent) -> Answer:
        self.asked += 1
        return super().evaluate(selector, device)


def test_a_claim_without_a_request_that_is_known_holds_nothing_up() -> None:
    """As the reader hands it on when a later API offers one more kind of request."""
    strange = claiming(ClaimSpec((), (), ("spec.devices.requests[0] asks for nothing",)))
    gangs = gang("strange", group("w", 2, strange)), gang("ok", group("w", 1, claiming(ONE)))
    found = verdicts(columns(node("a")), facts({"a": gpus(1)}), *gangs)
    assert isinstance(found["ok"], Admitted)
    refused = found["strange"]
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.UNSUPPORTED

"""Gangs whose pods claim devices: what counting says wrongly, waves, and what is left open."""

from scheduling.devices.gang import ClaimGroup, Foreseen, NodeOffer, NoPlacement, Verdict, foresee
from scheduling.devices.node_devices import REACHED_BY_OTHERS, NodeDevices
from scheduling.devices.outcome import Doubt, NotAllocated, Refusal, Undecided, Unsupported
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.resource_claim import ClaimSpec, DeviceRequest
from tests.scheduling.devices.builders import (
    RULES,
    claim,
    device,
    every,
    exactly,
    node_devices,
    on_node,
    slice_of,
)

STEPS = 100_000
ANY = claim(exactly())
TYPE_X = claim(exactly("type=X"))
X, Y = device("x", type="X"), device("y", type="Y")


def verdict(
    groups: list[tuple[ClaimSpec, int]],
    *nodes: NodeDevices,
    pending: tuple[tuple[ClaimSpec, int], ...] = (),
    steps: int = STEPS,
) -> Verdict:
    others = tuple(((each,), count) for each, count in pending)
    offers = [
        NodeOffer(["abc"[at]], each, (9,) * len(groups), pending=others)
        for at, each in enumerate(nodes)
    ]
    wanted = [ClaimGroup((each,), count) for each, count in groups]
    return foresee(wanted, offers, RULES, StepBudget(steps))


def gpus(count: int, node: str = "a") -> NodeDevices:
    return on_node(*(device(f"gpu-{at}") for at in range(count)), node=node)


def test_places_equal_pods_where_devices_are() -> None:
    found = verdict([(claim(exactly(count=2)), 3)], gpus(5), gpus(2, "b"))
    assert found == Foreseen((("a", (2,)), ("b", (1,))), (0,))


def test_places_none_where_one_device_is_missing() -> None:
    found = verdict([(claim(exactly(count=2)), 3)], gpus(5), gpus(1, "b"))
    refused = NotAllocated(Refusal.NO_DEVICES)
    assert found == NoPlacement(((refused,),), (2,))


def test_pods_of_two_classes_need_no_waves_where_their_devices_differ() -> None:
    found = verdict([(TYPE_X, 1), (claim(exactly("type=Y")), 1)], on_node(X, Y))
    assert found == Foreseen((("a", (1, 1)),), (0, 0))


def test_two_numa_nodes_with_one_free_device_each_are_no_pair() -> None:
    """Counting sees two free devices."""
    devices = [device(f"{numa}-{at}", numa=numa) for numa in "01" for at in range(2)]
    pair = claim(exactly(count=2), match="numa")
    assert isinstance(verdict([(pair, 2)], on_node(*devices)), Foreseen)
    split = on_node(*devices, in_use=["0-0", "1-0"])
    assert isinstance(verdict([(pair, 1)], split), NoPlacement)


def test_a_pair_on_one_numa_node_comes_before_single_devices() -> None:
    """In the other order the single devices are taken one on each side of what is left."""
    devices = [device("0-0", numa="0"), device("1-0", numa="1"), device("1-1", numa="1")]
    asked = [(ANY, 1), (claim(exactly(count=2), match="numa"), 1)]
    assert verdict(asked, on_node(*devices)) == Foreseen((("a", (1, 1)),), (0, 1))
    asked_first = [devices[1], devices[2], devices[0]]
    assert verdict(asked, on_node(*asked_first)) == Foreseen((("a", (1, 1)),), (1, 0))


def test_the_first_alternative_takes_what_another_pod_needs() -> None:
    """Counting sees a device for each of them."""
    either = claim((exactly("type=X", name="x"), exactly("type=Y", name="y")))
    assert verdict([(either, 1), (TYPE_X, 1)], on_node(X, Y)) == Foreseen((("a", (1, 1)),), (1, 0))


def test_all_fails_where_a_device_is_tainted() -> None:
    tainted = device("broken", tainted=True, type="X")
    asked = [(claim(every()), 1)]
    assert isinstance(verdict(asked, on_node(X, Y)), Foreseen)
    assert isinstance(verdict(asked, on_node(X, tainted)), NoPlacement)
    assert isinstance(verdict([(ANY, 2)], on_node(X, tainted)), NoPlacement)
    tolerant = claim(exactly(tolerates=True))
    assert isinstance(verdict([(tolerant, 2)], on_node(X, tainted)), Foreseen)


def test_a_foreign_pod_may_take_the_very_device_that_was_foreseen() -> None:
    """Another device would do for it, but it takes the first."""
    assert isinstance(verdict([(TYPE_X, 1)], on_node(X, Y)), Foreseen)
    assert verdict([(TYPE_X, 1)], on_node(X, Y), pending=((ANY, 1),)) == Undecided(Doubt.OTHERS)


def test_foreign_pods_are_counted_where_that_is_exact() -> None:
    assert isinstance(verdict([(ANY, 1)], gpus(2), pending=((ANY, 1),)), Foreseen)
    assert isinstance(verdict([(ANY, 2)], gpus(2), pending=((ANY, 1),)), NoPlacement)
    beside = ((claim(exactly("type=Y")), 1),)
    assert isinstance(verdict([(TYPE_X, 1)], on_node(X, Y), pending=beside), Foreseen)


def test_a_node_on_which_a_selector_fails_is_refused_by_name() -> None:
    found = verdict([(claim(exactly("error")), 1)], gpus(1))
    assert found == NoPlacement(((NotAllocated(Refusal.SELECTOR_FAILS, "error"),),), (0,))


def test_an_unknown_class_is_refused_by_name() -> None:
    lost = claim(DeviceRequest("gpu", "lost"))
    found = verdict([(lost, 1)], gpus(1))
    assert found == NoPlacement(((NotAllocated(Refusal.UNKNOWN_CLASS, "lost"),),), (0,))


def test_a_selector_that_is_not_read_is_unsupported_by_name() -> None:
    found = verdict([(claim(exactly("unknown")), 1)], gpus(1))
    assert found == Unsupported("selector unknown")


def test_devices_that_several_nodes_reach_are_unsupported_where_they_would_be_taken() -> None:
    shared = slice_of([device("far", type="X")])
    near = slice_of([device("near")], "a")
    both = node_devices(near, shared)
    assert verdict([(claim(every("type=X")), 1)], both) == Unsupported(REACHED_BY_OTHERS)
    assert isinstance(verdict([(ANY, 1)], both), Foreseen), "the near one is tried first"


def test_a_search_that_takes_too_long_is_undecided() -> None:
    assert verdict([(ANY, 2)], gpus(8), steps=5) == Undecided(Doubt.STEPS)


def test_what_else_is_free_limits_the_mixes() -> None:
    groups = [ClaimGroup((ANY,), 2, (3,)), ClaimGroup((ANY,), 1, (1,))]
    offers = [
        NodeOffer(["a"], gpus(4), (2, 1), (6,)),
        NodeOffer(["b"], gpus(4, "b"), (0, 1), (6,)),
    ]
    found = foresee(groups, offers, RULES, StepBudget(STEPS))
    assert found == Foreseen((("a", (2, 0)), ("b", (0, 1))), (0, 0))
    assert isinstance(foresee(groups, offers[:1], RULES, StepBudget(STEPS)), NoPlacement)


def test_a_pod_that_a_constraint_refuses_fits_once_a_device_of_all_is_taken() -> None:
    """Of mode All a constraint refuses the node; a device in use only has the next tried."""
    both = every("type=X", name="all"), exactly("type=Y", name="one")
    either = claim(both, match="numa")
    devices = [device(f"x{numa}", type="X", numa=numa) for numa in "01"]
    node = on_node(*devices, device("y", type="Y", numa="0"))
    assert verdict([(either, 1)], node) == NoPlacement(
        ((NotAllocated(Refusal.CONSTRAINT, "gpu.example.com/a/x1"),),), (0,)
    )
    assert verdict([(either, 1), (TYPE_X, 1)], node) == Foreseen((("a", (1, 1)),), (1, 0))
    coming = verdict([(either, 1)], node, pending=((TYPE_X, 1),))
    assert coming == Undecided(Doubt.OTHERS)

"""A pod of others passes a node where all that is decided there gets its devices after it."""

from collections.abc import Iterator, Sequence
from itertools import permutations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from scheduling.devices.allocator import allocate
from scheduling.devices.keeping import OnTheWay, leaves_enough
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.outcome import Allocated
from scheduling.devices.steps import StepBudget
from scheduling.model.shape.restrictions import Claims
from tests.scheduling.devices.builders import RULES, claim, device, exactly, on_node
from tests.scheduling.devices.test_gang_properties import CLAIMS, plain

STEPS = 1_000_000
ANY, X, Y = (claim(exactly()),), (claim(exactly("type=X")),), (claim(exactly("type=Y")),)
EITHER = (claim((exactly("type=X", name="x"), exactly("type=Y", name="y"))),)
X_AND_Y = on_node(device("0", type="X"), device("1", type="Y"))
Y_AND_X = on_node(device("0", type="Y"), device("1", type="X"))


def once(*kinds: Claims) -> OnTheWay:
    """Pods that come in any order, one of each kind."""
    return OnTheWay((tuple((claims, 1) for claims in kinds),))


def judged(asked: Claims, there: OnTheWay, node: NodeDevices, steps: int = STEPS) -> bool:
    return leaves_enough(asked, there, node, RULES, StepBudget(steps))


def test_it_is_the_device_that_the_allocator_chooses_that_counts() -> None:
    """Another would do for the pod, but it gets the first."""
    assert not judged(ANY, once(X), X_AND_Y)
    assert judged(ANY, once(X), Y_AND_X)


def test_pods_in_flight_have_theirs_before_it() -> None:
    three = on_node(*(device(str(at), type="X") for at in range(3)))
    assert judged(X, once(X), three)
    assert not judged(X, OnTheWay((((X, 1),),), allocated=(X, X)), three)
    assert not judged(X, OnTheWay((((X, 1),),), perhaps=(X, X)), three)
    assert not judged(X, OnTheWay((((X, 2),),), allocated=(X,)), three)


def test_what_the_pod_lacks_itself_is_not_asked() -> None:
    """kube-scheduler says whether it gets its own; a pod in flight may have ended elsewhere."""
    there = OnTheWay((((X, 1),),), perhaps=(Y,))
    assert judged(Y, there, X_AND_Y)


def test_where_a_pod_may_be_and_no_count_is_exact_nothing_is_sure() -> None:
    two = on_node(device("0", type="X"), device("1", type="X"), device("2", type="Y"))
    assert judged(EITHER, once(X), two)
    assert not judged(EITHER, OnTheWay((((X, 1),),), perhaps=(Y,)), two)


@pytest.mark.parametrize("waves", [((EITHER,), (Y,)), ((Y,), (EITHER,))])
def test_the_order_of_the_waves_counts(waves: tuple[tuple[Claims, ...], ...]) -> None:
    """First either of the two and then Y: where the first gets X. A pod that takes X undoes it."""
    node = on_node(device("0", type="X"), device("1", type="X"), device("2", type="Y"))
    there = OnTheWay(tuple(tuple((claims, 1) for claims in wave) for wave in waves))
    assert judged(X, there, node)
    less = on_node(device("1", type="X"), device("2", type="Y"))
    assert not judged(X, there, less)


def test_what_cannot_be_read_or_judged_does_not_pass() -> None:
    assert not judged(X, OnTheWay((), unread=True), X_AND_Y)
    assert not judged((claim(exactly("error")),), once(X), X_AND_Y)
    assert not judged((claim(exactly("unknown")),), once(X), X_AND_Y)
    assert judged(EITHER, once(Y), X_AND_Y)
    assert not judged(EITHER, once(Y), X_AND_Y, steps=1)


def orders(waves: Sequence[Sequence[tuple[Claims, int]]]) -> Iterator[tuple[Claims, ...]]:
    """Yield the orders in which pods may come that are released in waves."""
    ours = [(at, claims) for at, wave in enumerate(waves) for claims, n in wave for _ in range(n)]
    for order in set(permutations(ours)):
        if [wave for wave, _ in order] == sorted(wave for wave, _ in order):
            yield tuple(claims for _, claims in order)


def succeeds(node: NodeDevices, coming: Sequence[Claims]) -> bool:
    in_use = node.in_use
    for claims in coming:
        found = allocate(claims, node.pools, in_use, RULES, StepBudget(STEPS))
        if not isinstance(found, Allocated):
            return False
        in_use = in_use.plus(found.given)
    return True


contents = st.lists(st.tuples(st.sampled_from("XY"), st.sampled_from("01")), min_size=2, max_size=5)
some = st.one_of(plain, st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=2).map(tuple))
waves = st.lists(
    st.lists(st.tuples(some, st.integers(1, 2)), min_size=1, max_size=2).map(tuple),
    min_size=1,
    max_size=2,
).filter(lambda found: sum(count for wave in found for _, count in wave) <= 4)


@given(contents, some, waves, st.lists(plain, max_size=1), st.lists(plain, max_size=1))
def test_a_pod_that_passes_takes_nothing_from_what_is_decided(
    content: list[tuple[str, str]],
    asked: Claims,
    decided: list[tuple[tuple[Claims, int], ...]],
    allocated: list[Claims],
    perhaps: list[Claims],
) -> None:
    """Brute force: with and without the pod that may be there, in each order that may come."""
    node = on_node(*(device(f"{n}", type=t, numa=numa) for n, (t, numa) in enumerate(content)))
    there = OnTheWay(tuple(decided), tuple(allocated), tuple(perhaps))
    passes = judged(asked, there, node)
    worlds = [[*allocated, *maybe, asked] for maybe in ([], perhaps)]
    holds = all(
        succeeds(node, [*before, *order])
        for before in worlds
        if succeeds(node, before)
        for order in orders(decided)
    )
    event(f"passes: {passes}, holds: {holds}")
    assert holds or not passes

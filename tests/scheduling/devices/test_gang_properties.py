"""Gangs on small worlds against brute force: all placements, all orders in which pods may come."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product

from hypothesis import event, given
from hypothesis import strategies as st

from scheduling.devices.allocator import COUNTERS_OF_SHARES, allocate
from scheduling.devices.gang import ClaimGroup, Foreseen, NodeOffer, NoPlacement, Verdict, foresee
from scheduling.devices.mixes import KeptMixes
from scheduling.devices.outcome import Allocated, Doubt, Undecided, Unsupported
from scheduling.devices.search.constraints import DISTINCT
from scheduling.devices.steps import StepBudget
from scheduling.devices.wanted import FULL_SHARED
from scheduling.model.devices.capacity import Capacity
from scheduling.model.devices.resource_slice import CounterSet, Device
from scheduling.model.shape.restrictions import Claims
from tests.scheduling.devices.builders import (
    RULES,
    claim,
    counters,
    device,
    every,
    exactly,
    node_devices,
    on_node,
    share,
    slice_of,
    some,
)

STEPS = 1_000_000
DIFFERING = (DISTINCT, FULL_SHARED, COUNTERS_OF_SHARES)
"""What versions of kube-scheduler do differently, and so is not said."""

X, Y = exactly("type=X", name="x"), exactly("type=Y", name="y")
PAIR = exactly(count=2)
CLAIMS = [
    claim(exactly()),
    claim(exactly("type=X")),
    claim(exactly("type=Y")),
    claim(exactly("numa=0")),
    claim(exactly("type=X", tolerates=True)),
    claim(PAIR),
    claim(PAIR, match="numa"),
    claim(exactly("type=X"), exactly("type=Y"), match="numa"),
    claim(exactly(), exactly("type=X")),
    claim((X, Y)),
    claim((exactly("type=X", count=2, name="x"), Y), exactly()),
    claim(every("type=X")),
    claim(every("numa=0"), exactly()),
    claim((every("type=X", name="x"), Y), match="numa"),
    claim((every(name="all"), PAIR), match="numa"),
    claim(some(memory=2)),
    claim(some(memory=3)),
    claim(some(memory=1), some(memory=2)),
    claim((some(memory=3), exactly("type=X"))),
    claim(exactly("type=X"), exactly("type=Y"), distinct="numa"),
    claim(PAIR, distinct="type"),
]

devices = st.tuples(
    st.sampled_from("XY"),
    st.sampled_from("01"),
    st.integers(0, 5).map(lambda draw: draw == 0),
    st.sampled_from([1, 1, 2, 3]),
    st.sampled_from([None, None, 3, 4]),
)
"""Type, NUMA node, whether it is tainted, what it consumes, what several claims may have of it."""
memory = st.sampled_from([0, 0, 3, 4])
"""Of a node's GPU whose partitions its devices are; 0 where they are not."""
nodes = st.tuples(st.lists(devices, min_size=2, max_size=5), st.sampled_from([0, 0, 1, 2]))
plain = st.sampled_from(CLAIMS[:6]).map(lambda one: (one,))
pods = st.one_of(
    plain, plain, st.just(()), st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=2).map(tuple)
)
groups = st.lists(st.tuples(pods, st.integers(1, 2)), min_size=1, max_size=2)
pending = st.lists(st.tuples(plain, st.integers(1, 2)), min_size=1, max_size=1).map(tuple)


@st.composite
def offers(draw: st.DrawFn, kinds: int) -> list[NodeOffer]:
    found = []
    for name in "ab"[: draw(st.integers(1, 2))]:
        content, taken = draw(nodes)
        whole = draw(memory)
        made = [
            replace(
                sized(device(f"{at}", tainted=tainted, type=type_, numa=numa), size),
                consumes_counters=consumed(part) if whole else (),
            )
            for at, (type_, numa, tainted, part, size) in enumerate(content)
        ]
        of_some = [f"{at}" for at in range(len(made)) if taken >> at & 1]
        in_use = [each for each in of_some if content[int(each)][4] is None]
        shares = [share(each, 0, name, memory=1) for each in of_some if each not in in_use]
        most = tuple(draw(st.sampled_from([2, 2, 1, 0])) for _ in range(kinds))
        there = draw(st.one_of(st.just(()), st.just(()), pending))
        slices = [slice_of(made, name, of=2), counters(name, gpu_0=whole, of=2)]
        of_gpu = node_devices(*slices, node=name, in_use=in_use, shares=shares)
        plain_devices = on_node(*made, node=name, in_use=in_use, shares=shares)
        alone = NodeOffer([name], of_gpu if whole else plain_devices, most)
        offer = replace(alone, pending=there)
        found.append(offer if succeeds(offer, foreign(offer)) else alone)
    return found


def sized(one: Device, memory: int | None) -> Device:
    """Return a device with so much memory for several claims, where there is any."""
    if memory is None:
        return one
    content = replace(one.content, allow_multiple_allocations=True)
    return replace(one, content=content, capacities=(Capacity("memory", memory),))


def consumed(memory: int) -> tuple[CounterSet, ...]:
    return (CounterSet("gpu-0", (("memory", memory),)),)


def succeeds(offer: NodeOffer, pods: Sequence[Claims]) -> bool:
    """Say whether pods that come in this order all get their devices."""
    in_use = offer.devices.in_use
    for claims in pods:
        found = allocate(claims, offer.devices.pools, in_use, RULES, StepBudget(STEPS))
        if not isinstance(found, Allocated):
            return False
        in_use = in_use.plus(found.given)
    return True


def pods_of(gang: Sequence[ClaimGroup], mix: Sequence[int]) -> list[Claims]:
    return [each.claims for each, count in zip(gang, mix, strict=True) for _ in range(count)]


def foreign(offer: NodeOffer) -> list[Claims]:
    return [claims for claims, count in offer.pending for _ in range(count)]


def placements(
    gang: Sequence[ClaimGroup], found: Sequence[NodeOffer]
) -> Iterator[list[tuple[int, ...]]]:
    mixes = [list(product(*(range(most + 1) for most in offer.most))) for offer in found]
    total = tuple(each.count for each in gang)
    for chosen in product(*mixes):
        if tuple(map(sum, zip(*chosen, strict=True))) == total:
            yield list(chosen)


def fits_in_some_order(gang: Sequence[ClaimGroup], found: Sequence[NodeOffer]) -> bool:
    return any(
        all(
            not any(mix)
            or any(
                succeeds(offer, order)
                for order in set(permutations([*pods_of(gang, mix), *foreign(offer)]))
            )
            for offer, mix in zip(found, chosen, strict=True)
        )
        for chosen in placements(gang, found)
    )


def fits_group_by_group(gang: Sequence[ClaimGroup], found: Sequence[NodeOffer]) -> bool:
    return any(
        all(
            succeeds(offer, [each for at in order for each in pods_of([gang[at]], [mix[at]])])
            for offer, mix in zip(found, chosen, strict=True)
        )
        for order in permutations(range(len(gang)))
        for chosen in placements(gang, found)
    )


def orders_within(
    gang: Sequence[ClaimGroup], mix: Sequence[int], waves: Sequence[int], others: list[Claims]
) -> Iterator[tuple[Claims, ...]]:
    """Yield the orders in which pods may come that are released in waves, others at any time."""
    ours = [(waves[at], each.claims) for at, each in enumerate(gang) for _ in range(mix[at])]
    for order in set(permutations([*ours, *((None, each) for each in others)])):
        in_waves = [wave for wave, _ in order if wave is not None]
        if in_waves == sorted(in_waves):
            yield tuple(claims for _, claims in order)


def described(verdict: Verdict) -> str:
    match verdict:
        case Foreseen(_, waves):
            return f"placed in {1 + max(waves)} waves"
        case Undecided(doubt):
            return f"undecided: {doubt}"
        case _:
            return "no placement"


worlds = groups.flatmap(lambda made: st.tuples(st.just(made), offers(len(made))))


@given(worlds)
def test_verdict_is_that_of_brute_force(
    world: tuple[list[tuple[Claims, int]], list[NodeOffer]],
) -> None:
    gang = [ClaimGroup(claims, count) for claims, count in world[0]]
    found = world[1]
    verdict = foresee(gang, found, RULES, StepBudget(STEPS))
    event(described(verdict))
    by_name = {offer.names[0]: offer for offer in found}
    match verdict:
        case Foreseen(placement, waves):
            assert tuple(map(sum, zip(*(mix for _, mix in placement), strict=True))) == tuple(
                each.count for each in gang
            )
            for name, mix in placement:
                offer = by_name[name]
                assert all(pods <= most for pods, most in zip(mix, offer.most, strict=True))
                for order in orders_within(gang, mix, waves, foreign(offer)):
                    assert succeeds(offer, order), (name, mix, waves)
        case NoPlacement():
            assert not fits_in_some_order(gang, found)
        case Undecided(Doubt.OTHERS):
            assert any(offer.pending for offer in found)
        case Undecided(Doubt.ORDER):
            assert len(gang) > 1
            alone = [offer for offer in found if not offer.pending]
            assert not fits_group_by_group(gang, alone)
        case Unsupported(feature):
            assert feature in DIFFERING
        case _:
            raise AssertionError(verdict)


@given(worlds, st.integers(0, 40))
def test_what_is_kept_of_one_gang_changes_no_answer_to_another(
    world: tuple[list[tuple[Claims, int]], list[NodeOffer]], few: int
) -> None:
    """Neither does what is kept of a search that ran out of steps."""
    gang, found = [ClaimGroup(claims, count) for claims, count in world[0]], world[1]
    smaller, kept = [replace(each, count=1) for each in gang], KeptMixes()
    foresee(gang, found, RULES, StepBudget(few), kept=kept)
    spent = []
    for asked in (gang, smaller, gang):
        alone, steps = StepBudget(STEPS), StepBudget(STEPS)
        answer = foresee(asked, found, RULES, alone)
        assert foresee(asked, found, RULES, steps, kept=kept) == answer
        spent.append(STEPS - steps.left)
    assert spent[2] <= spent[0]


@given(worlds, st.lists(st.booleans(), max_size=8))
def test_there_are_never_more_pods_than_the_bound_says_whoever_comes_between(
    world: tuple[list[tuple[Claims, int]], list[NodeOffer]], ours: list[bool]
) -> None:
    [(claims, _), *_], [offer, *_] = world
    asked = (*(others for others, _ in offer.pending), *(others for others, _ in world[0]))
    count, in_use = 0, offer.devices.in_use
    for at, mine in enumerate(ours):
        pod = claims if mine else asked[at % len(asked)]
        found = allocate(pod, offer.devices.pools, in_use, RULES, StepBudget(STEPS))
        if isinstance(found, Allocated):
            in_use = in_use.plus(found.given)
            count += pod == claims
    assert count <= offer.devices.most(claims, RULES)

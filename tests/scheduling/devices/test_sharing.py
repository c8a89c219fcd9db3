"""Pods of a gang that share claims: what they share is allocated once, and they go to one node."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

from hypothesis import event, given
from hypothesis import strategies as st

from scheduling.devices.allocator import allocate
from scheduling.devices.gang import ClaimGroup, Foreseen, NodeOffer, NoPlacement, Verdict, foresee
from scheduling.devices.outcome import Allocated, Doubt, Undecided, Unsupported
from scheduling.devices.sharing import PartedGroups
from scheduling.devices.steps import StepBudget
from scheduling.model.shape.restrictions import Claims
from tests.scheduling.devices.builders import RULES, claim, device, exactly, on_node
from tests.scheduling.devices.test_gang_properties import (
    CLAIMS,
    DIFFERING,
    STEPS,
    described,
    offers,
    placements,
    plain,
)

ONE: Claims = (claim(exactly()),)
TWO: Claims = (claim(exactly(count=2)),)
Pod = tuple[Claims, object]


def verdict(groups: Sequence[ClaimGroup], found: Sequence[NodeOffer]) -> Verdict:
    parted = PartedGroups.of_groups(groups)
    nodes = (replace(each, most=parted.most(each.most)) for each in found)
    return parted.joined(foresee(parted.parts, nodes, RULES, StepBudget(STEPS)))


def offer(name: str, devices: int, *most: int) -> NodeOffer:
    found = on_node(*(device(f"gpu-{at}") for at in range(devices)), node=name)
    return NodeOffer([name], found, most)


def test_all_who_share_go_to_one_node_and_take_its_devices_once() -> None:
    groups = [ClaimGroup(ONE, 1), ClaimGroup(TWO, 3, tie="ours"), ClaimGroup(TWO, 1, tie="ours")]
    found = verdict(groups, [offer("a", 1, 0, 9, 9), offer("b", 3, 9, 9, 9)])
    assert found == Foreseen((("b", (1, 3, 1)),), (0, 0, 0))
    found = verdict(groups, [offer("a", 2, 9, 9, 9), offer("b", 1, 9, 9, 9)])
    assert found == Foreseen((("a", (0, 3, 1)), ("b", (1, 0, 0))), (0, 0, 0))


def test_a_node_that_has_room_for_some_who_share_has_it_for_none() -> None:
    groups = [ClaimGroup(TWO, 3, tie="ours"), ClaimGroup(TWO, 1, tie="ours")]
    found = verdict(groups, [offer("a", 2, 2, 1), offer("b", 1, 3, 1)])
    assert isinstance(found, NoPlacement)
    assert found.most == (0, 0)


def test_who_share_are_released_together_where_the_order_matters() -> None:
    either = (claim((exactly("type=X", name="x"), exactly("type=Y", name="y"))),)
    only_x = (claim(exactly("type=X")),)
    node = on_node(device("x", type="X"), device("y", type="Y"))
    groups = [ClaimGroup(either, 2, tie="ours"), ClaimGroup(only_x, 1)]
    found = verdict(groups, [NodeOffer(["a"], node, (9, 9))])
    assert found == Foreseen((("a", (2, 1)),), (1, 0))


# ---- against brute force

counts = st.integers(1, 2)
shared = st.one_of(plain, st.sampled_from(CLAIMS).map(lambda one: (one,)))
alone = st.lists(st.tuples(plain, counts), min_size=0, max_size=1)
gangs = st.tuples(shared, st.lists(counts, min_size=1, max_size=2), alone).map(
    lambda drawn: [
        *(ClaimGroup(drawn[0], count, tie="ours") for count in drawn[1]),
        *(ClaimGroup(claims, count) for claims, count in drawn[2]),
    ]
)


def succeeds(node: NodeOffer, pods: Sequence[Pod]) -> bool:
    """Say whether pods that come in this order all get their devices, or find them."""
    in_use, begun = node.devices.in_use, set[object]()
    for claims, tie in pods:
        if tie in begun:
            continue
        begun |= {tie} - {None}
        found = allocate(claims, node.devices.pools, in_use, RULES, StepBudget(STEPS))
        if not isinstance(found, Allocated):
            return False
        in_use = in_use.plus(found.given)
    return True


def is_together(gang: Sequence[ClaimGroup], chosen: Sequence[Sequence[int]]) -> bool:
    tied = [at for at, each in enumerate(gang) if each.tie is not None]
    return sum(any(mix[at] for at in tied) for mix in chosen) <= 1


def orders(
    gang: Sequence[ClaimGroup], mix: Sequence[int], node: NodeOffer
) -> set[tuple[tuple[int, Pod], ...]]:
    """Return all orders of the pods of a node, each pod with its group."""
    pods = [(at, (each.claims, each.tie)) for at, each in enumerate(gang) for _ in range(mix[at])]
    others = [(-1, (claims, None)) for claims, count in node.pending for _ in range(count)]
    return set(permutations([*pods, *others]))


@given(gangs.flatmap(lambda made: st.tuples(st.just(made), offers(len(made)))))
def test_verdict_is_that_of_brute_force(world: tuple[list[ClaimGroup], list[NodeOffer]]) -> None:
    gang, found = world
    answer = verdict(gang, found)
    event(described(answer))
    by_name = {each.names[0]: each for each in found}
    match answer:
        case Foreseen(placement, waves):
            mixes = [mix for _, mix in placement]
            total = tuple(map(sum, zip(*mixes, strict=True)))
            assert total == tuple(each.count for each in gang)
            assert is_together(gang, mixes)
            assert len({waves[at] for at, each in enumerate(gang) if each.tie}) == 1
            for name, mix in placement:
                assert all(map(int.__le__, mix, by_name[name].most))
                for order in orders(gang, mix, by_name[name]):
                    in_waves = [waves[at] for at, _ in order if at >= 0]
                    if in_waves == sorted(in_waves):
                        assert succeeds(by_name[name], [pod for _, pod in order])
        case NoPlacement():
            for chosen in placements(gang, found):
                assert not is_together(gang, chosen) or not all(
                    not any(mix) or any(_orders_succeed(gang, mix, each))
                    for mix, each in zip(chosen, found, strict=True)
                )
        case Undecided(Doubt.OTHERS):
            assert any(each.pending for each in found)
        case Undecided(Doubt.ORDER):
            assert len(gang) > 1
        case Unsupported(feature):
            assert feature in DIFFERING
        case _:
            raise AssertionError(answer)


def _orders_succeed(gang: Sequence[ClaimGroup], mix: Sequence[int], node: NodeOffer) -> list[bool]:
    return [succeeds(node, [pod for _, pod in order]) for order in orders(gang, mix, node)]

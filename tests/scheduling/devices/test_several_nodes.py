"""Devices that several nodes reach: gangs on small worlds against all placements and orders."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product

from hypothesis import event, given
from hypothesis import strategies as st

from scheduling.devices.allocator import allocate
from scheduling.devices.counting import DevicesOfSeveralNodes
from scheduling.devices.gang import ClaimGroup, Foreseen, NodeOffer, NoPlacement, Verdict, foresee
from scheduling.devices.node_devices import REACHED_BY_OTHERS, NodeDevices
from scheduling.devices.outcome import Allocated, Doubt, Undecided, Unsupported
from scheduling.devices.pools import Pool, SliceIndex, gather_pools
from scheduling.devices.steps import StepBudget
from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.devices.in_use import NOTHING
from scheduling.model.devices.resource_claim import ClaimSpec
from scheduling.model.devices.resource_slice import NodeAccess, ResourceSlice
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims
from tests.scheduling.devices.builders import RULES, claim, device, every, exactly, slice_of

FAR, LOCAL = (claim(exactly(f"type={each}")) for each in ("far", "local"))
CLAIMS = [
    FAR,
    FAR,
    LOCAL,
    claim(exactly("type=far", count=2)),
    claim(exactly("type=far"), exactly("type=local")),
    claim(exactly("zone=x")),
    claim(exactly()),
    claim(every("type=far")),
]
STEPS = 1_000_000
Pods = Sequence[tuple[str, Claims]]
"""Pods by the node that they are on."""


@dataclass(frozen=True)
class World:
    """Nodes with what they reach, and the pods that are to come to each."""

    pools: dict[str, tuple[Pool, ...]]
    pending: dict[str, tuple[tuple[Claims, int], ...]]

    @property
    def nodes(self) -> dict[str, NodeDevices]:
        return {name: NodeDevices.of(pools, frozenset()) for name, pools in self.pools.items()}

    @property
    def others(self) -> Pods:
        coming = ((n, claims, count) for n, of in self.pending.items() for claims, count in of)
        return [(name, claims) for name, claims, count in coming for _ in range(count)]

    def verdict(self, gang: Sequence[ClaimGroup]) -> Verdict:
        nodes, most = self.nodes, tuple(each.count for each in gang)
        left = DevicesOfSeveralNodes(self.pending, nodes.get, RULES).left
        offers = [NodeOffer([n], of, most, (), self.pending.get(n, ())) for n, of in nodes.items()]
        return foresee(gang, offers, RULES, StepBudget(STEPS), left)

    def succeeds(self, pods: Pods) -> bool:
        """Say whether pods that come in this order all get their devices."""
        in_use = NOTHING
        for node, claims in pods:
            found = allocate(claims, self.pools[node], in_use, RULES, StepBudget(STEPS))
            if not isinstance(found, Allocated):
                return False
            in_use = in_use.plus(found.given)
        return True


def far(number: int, zone: str = "") -> ResourceSlice:
    """Return devices that all nodes reach, or those of a zone."""
    name = f"far-{zone}"
    made = [device(f"{name}{at}", type="far", zone=zone) for at in range(number)]
    only = (NodeTerm((Requirement("zone", "In", (zone,)),), ()),)
    access = NodeAccess(node_selector=only) if zone else NodeAccess(all_nodes=True)
    return replace(slice_of(made, name=name), pool=name, access=access)


def world(
    local: dict[str, int], *slices: ResourceSlice, pending: dict[str, Claims] | None = None
) -> World:
    """Return nodes with so many devices of their own, those before c in zone x."""
    own = [
        slice_of([device(f"{name}{at}", type="local") for at in range(number)], name)
        for name, number in local.items()
    ]
    index = SliceIndex([*own, *slices])
    pools = {
        name: gather_pools(
            Node(name, {"zone": "x" if name < "c" else "y"}, (), False, {}), index, RULES.features
        )
        for name in local
    }
    return World(pools, {name: ((claims, 1),) for name, claims in (pending or {}).items()})


def test_what_one_node_takes_is_taken_on_all() -> None:
    found = world({"a": 0, "b": 0, "c": 0}, far(3))
    both = found.verdict([ClaimGroup((FAR,), 3)])
    assert isinstance(both, Foreseen)
    assert isinstance(found.verdict([ClaimGroup((FAR,), 4)]), NoPlacement)


def test_devices_of_a_zone_bound_the_pods_of_its_nodes_alone() -> None:
    found = world({"a": 0, "b": 0, "c": 0}, far(2, "x"), far(1, "y"))
    placed = found.verdict([ClaimGroup((FAR,), 3)])
    assert isinstance(placed, Foreseen)
    assert dict(placed.placement)["c"] == (1,)
    assert isinstance(found.verdict([ClaimGroup((FAR,), 4)]), NoPlacement)


def test_pods_on_their_way_to_other_nodes_take_such_devices_too() -> None:
    found = world({"a": 0, "b": 0}, far(2), pending={"b": (FAR,)})
    assert isinstance(found.verdict([ClaimGroup((FAR,), 1)]), Foreseen)
    assert isinstance(found.verdict([ClaimGroup((FAR,), 2)]), NoPlacement)
    unknown = world({"a": 0, "b": 1}, far(2), pending={"b": (claim(exactly()),)})
    assert unknown.verdict([ClaimGroup((FAR,), 1)]) == Undecided(Doubt.OTHERS)


def test_pods_on_a_node_that_does_not_exist_take_nothing() -> None:
    """A tenant may name any node in a pod, and would leave all others in doubt."""
    found = world({"a": 0}, far(1), pending={"gone": (FAR,)})
    assert isinstance(found.verdict([ClaimGroup((FAR,), 1)]), Foreseen)


def test_pods_that_share_a_claim_for_such_devices_are_not_refused_for_one_node() -> None:
    found = world({"a": 0}, far(1))
    tied = [ClaimGroup((FAR,), 1, tie="t"), ClaimGroup((FAR,), 1, tie="t")]
    assert found.verdict(tied) == Unsupported(REACHED_BY_OTHERS)


def pods_of(gang: Sequence[ClaimGroup], node: str, mix: Sequence[int]) -> list[tuple[str, Claims]]:
    return [(node, g.claims) for g, count in zip(gang, mix, strict=True) for _ in range(count)]


def placements(gang: Sequence[ClaimGroup], names: Sequence[str]) -> Iterator[Pods]:
    mixes = list(product(*(range(each.count + 1) for each in gang)))
    total = tuple(each.count for each in gang)
    for chosen in product(mixes, repeat=len(names)):
        if tuple(map(sum, zip(*chosen, strict=True))) == total:
            yield [p for n, mix in zip(names, chosen, strict=True) for p in pods_of(gang, n, mix)]


groups = st.lists(st.tuples(st.sampled_from(CLAIMS), st.integers(1, 2)), min_size=1, max_size=2)
slices = st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["", "x", "y"])), max_size=2)
pending = st.dictionaries(st.sampled_from("ac"), st.sampled_from(CLAIMS[:7]), max_size=1)


@given(groups, st.tuples(*[st.integers(0, 2)] * 2), slices, pending)
def test_verdict_is_that_of_brute_force(
    asked: list[tuple[ClaimSpec, int]],
    local: tuple[int, int],
    of: list[tuple[int, str]],
    coming: dict[str, ClaimSpec],
) -> None:
    gang = [ClaimGroup((one,), count) for one, count in asked]
    zones = {zone: far(number, zone) for number, zone in of}
    there: dict[str, Claims] = {name: (one,) for name, one in coming.items()}
    found = world(dict(zip("ac", local, strict=True)), *zones.values(), pending=there)
    if not any(map(found.succeeds, permutations(found.others))):
        return
    verdict = found.verdict(gang)
    event(type(verdict).__name__)
    match verdict:
        case Foreseen(placement, waves):
            ours = [p for name, mix in placement for p in pods_of(gang, name, mix)]
            wave = {each.claims: at for each, at in zip(gang, waves, strict=True)}
            for order in set(permutations([*ours, *found.others])):
                in_waves = [wave[claims] for n, claims in order if (n, claims) in ours]
                if in_waves == sorted(in_waves):
                    assert found.succeeds(order), (placement, waves, order)
        case NoPlacement():
            for placed in placements(gang, list(found.pools)):
                everyone = [*placed, *found.others]
                assert not any(map(found.succeeds, set(permutations(everyone)))), placed

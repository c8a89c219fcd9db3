"""A pod that passes takes nothing from what is decided on any node: against all orders."""

from collections.abc import Sequence
from itertools import permutations

from hypothesis import event, given
from hypothesis import strategies as st

from extender.devices.coming import Coming
from extender.devices.far import FarDemand, Judge
from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.resource_claim import ClaimSpec
from scheduling.model.gang import GangKey
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims
from tests.scheduling.devices.builders import RULES, device, slice_of
from tests.scheduling.devices.test_several_nodes import CLAIMS, STEPS, World, far

NAMES = "abc"
NODES = {n: Node(n, {"zone": "x" if n < "c" else "y"}, (), False, {}) for n in NAMES}
GANG = GangKey("team", "train")
Pods = Sequence[tuple[str, ClaimSpec]]

pods = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(CLAIMS)), min_size=1, max_size=3)
slices = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["", "x", "y"])), max_size=2)


def coming(decided: Pods, bound: Pods) -> dict[str, Coming]:
    found: dict[str, Coming] = {}
    for at, (name, one) in enumerate(decided):
        found.setdefault(name, Coming()).decided.append((GANG, 0, f"uid-{at}", (one,)))
    for name, one in bound:
        if name in found:
            found[name].bound.append((one,))
    return found


@given(
    pods,
    pods.filter(lambda found: len(found) == 1),
    st.lists(st.sampled_from(CLAIMS[:6]), max_size=1),
    st.tuples(st.sampled_from(NAMES), st.sampled_from(CLAIMS)),
    st.tuples(*[st.integers(0, 2)] * 3),
    slices,
)
def test_what_passes_leaves_what_is_decided_anywhere(
    decided: Pods,
    bound: Pods,
    passed: list[ClaimSpec],
    asked: tuple[str, ClaimSpec],
    local: tuple[int, int, int],
    of: list[tuple[int, str]],
) -> None:
    zones = {zone: far(number, zone) for number, zone in of}
    own = [
        slice_of([device(f"{name}{at}", type="local") for at in range(number)], name)
        for name, number in zip(NAMES, local, strict=True)
    ]
    index = NodeDevicesIndex(DeviceFacts([*own, *zones.values()], {}, RULES, 1))
    there = coming(decided, bound)
    where, spec = asked
    claims: Claims = (spec,)
    in_flight = {f"passed-{at}": (one,) for at, one in enumerate(passed)}
    on_the_way = there.get(where, Coming()).beside({}, [*in_flight.values()])
    loose = [(name, (one,)) for name, one in bound if name not in there]
    demand = FarDemand(there, loose, index, NODES)
    judge = Judge(claims, on_the_way, demand, in_flight)
    passes = judge.passes(index.of(NODES[where]), RULES, StepBudget(STEPS))
    event(f"passes: {passes}")
    if not passes:
        return
    world = World({name: index.of(node).pools_of_all for name, node in NODES.items()}, {})
    ours = [(name, (one,)) for name, one in decided]
    taken = [(name, (one,)) for name, one in bound]
    for elsewhere in NAMES:
        before = [*taken, *((elsewhere, (one,)) for one in passed)]
        if all(map(world.succeeds, ([*before, *order] for order in set(permutations(ours))))):
            if not world.succeeds([*before, (where, claims)]):
                continue
            for order in set(permutations(ours)):
                assert world.succeeds([*before, (where, claims), *order]), (elsewhere, order)

"""One cycle over gangs that ask for extended resources: from device plugins, or from classes."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.node_index import DeviceFacts
from scheduling.devices.pools import by_pool
from scheduling.model.devices.class_requests import ClassRequest
from scheduling.model.devices.resource_claim import DeviceRequest, Request
from scheduling.model.devices.resource_slice import DeviceID
from scheduling.model.pod import PodShape
from scheduling.model.shape.node_restrictions import with_claims
from scheduling.model.verdict import Admitted, Reason, Refusal
from tests.builders import GPU, columns, gang, group, node, shape
from tests.examples import examples
from tests.scheduling.devices.builders import CLASS, DRIVER, RULES, claim, exactly, slice_of
from tests.scheduling.test_cycle_devices import decide, gpus, nodes_of, verdicts, workers


def asking(number: int, *containers: int) -> PodShape:
    """A pod that asks for so many, in one container or in these."""
    names = {f"container-{at}-request-1": n for at, n in enumerate(containers or (number,))}
    requests = (
        ClassRequest(GPU, Request(name, DeviceRequest(name, CLASS, count=n)))
        for name, n in sorted(names.items())
    )
    return with_claims(shape(cpu=1, gpu=number), (), (), by_class=tuple(requests))


def known(devices: Mapping[str, int], taken: Iterable[tuple[str, int]] = ()) -> DeviceFacts:
    slices = [slice_of(gpus(count), name) for name, count in devices.items()]
    ids = [DeviceID(DRIVER, at, f"gpu-{number}") for at, number in taken]
    return DeviceFacts(slices, by_pool(ids), RULES, 0, resources=[GPU])


def test_a_node_that_lists_the_resource_is_counted_by_that_alone() -> None:
    """It has devices as well, that nobody is given by this name."""
    world, facts = columns(node("a", gpu=2), node("b")), known({"a": 8, "b": 3})
    found = verdicts(world, facts, workers("five", 5, asking(1)))["five"]
    assert nodes_of(found)["workers"] == {"a": 2, "b": 3}
    assert isinstance(verdicts(world, facts, workers("six", 6, asking(1)))["six"], Refusal)


def test_a_refusal_says_what_classes_give() -> None:
    found = verdicts(columns(node("a")), known({"a": 3}, [("a", 0)]), workers("g", 3, asking(1)))
    refusal = found["g"]
    assert isinstance(refusal, Refusal)
    assert refusal.reason is Reason.INSUFFICIENT_RESOURCES
    assert refusal.message.startswith("2 of 3 workers fit")


def test_two_gangs_of_one_cycle_are_not_given_the_same_devices() -> None:
    first, second = workers("first", 2, asking(1)), workers("second", 2, asking(1), created=1.0)
    found = verdicts(columns(node("a"), node("b")), known({"a": 3}), first, second)
    assert isinstance(found["first"], Admitted)
    assert isinstance(found["second"], Refusal)


def test_claims_and_resources_by_class_share_the_devices() -> None:
    by_claim = with_claims(shape(cpu=1), (claim(exactly()),), ())
    first, second = workers("first", 2, by_claim), workers("second", 2, asking(1), created=1.0)
    found = verdicts(columns(node("a")), known({"a": 4}), first, second)
    assert isinstance(found["first"], Admitted)
    assert isinstance(found["second"], Admitted)
    found = verdicts(columns(node("a")), known({"a": 3}), first, second)
    assert isinstance(found["second"], Refusal)


def test_more_than_32_devices_in_one_claim_are_refused() -> None:
    """kube-scheduler makes one claim for all containers."""
    world, facts = columns(node("a")), known({"a": 40})
    found = verdicts(world, facts, workers("g", 1, asking(34, 17, 17)))["g"]
    assert isinstance(found, Refusal)
    assert isinstance(verdicts(world, facts, workers("g", 1, asking(32, 16, 16)))["g"], Admitted)


def test_a_refusal_is_taken_back_once_devices_come_free() -> None:
    """The room as nodes list it is the same then."""
    asked, world = workers("g", 2, asking(1)), columns(node("a"))
    found, memory = decide(world, known({"a": 2}, [("a", 0)]), asked)
    assert isinstance(found["g"], Refusal)
    free = DeviceFacts(known({"a": 2}).slices, {}, RULES, 1, resources=[GPU])
    found, _ = decide(world, free, asked, memory=memory)
    assert isinstance(found["g"], Admitted)


# ---- against trying everything

WORLDS = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=3
)
GROUPS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2)), min_size=1, max_size=2)


@examples(150, otherwise=37)
@given(WORLDS, GROUPS)
def test_it_is_admitted_just_where_some_placement_holds(
    world: list[tuple[int, int, int]], groups: list[tuple[int, int]]
) -> None:
    """Nodes have CPUs, listed GPUs and devices; groups are pods that ask for so many GPUs each."""
    nodes = [node(f"n{at}", cpu=cpu, gpu=listed) for at, (cpu, listed, _) in enumerate(world)]
    facts = known({f"n{at}": devices for at, (_, _, devices) in enumerate(world) if devices})
    shapes = [asking(each) for _, each in groups]
    wanted = (
        group(f"g{at}", n, of) for at, ((n, _), of) in enumerate(zip(groups, shapes, strict=True))
    )
    found = verdicts(columns(*nodes), facts, gang("g", *wanted))["g"]
    assert isinstance(found, Admitted) == any(
        _holds(world, groups, way) for way in _ways(world, groups)
    )


def _ways(
    world: list[tuple[int, int, int]], groups: list[tuple[int, int]]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield for each group how many of its pods go to each node."""
    each = [
        [way for way in product(range(n + 1), repeat=len(world)) if sum(way) == n]
        for n, _ in groups
    ]
    return product(*each)


def _holds(
    world: list[tuple[int, int, int]],
    groups: list[tuple[int, int]],
    way: tuple[tuple[int, ...], ...],
) -> bool:
    for at, (cpu, listed, devices) in enumerate(world):
        pods = [of_group[at] for of_group in way]
        asked = sum(n * each for n, (_, each) in zip(pods, groups, strict=True))
        if sum(pods) > cpu or asked > (listed or devices):
            return False
    return True

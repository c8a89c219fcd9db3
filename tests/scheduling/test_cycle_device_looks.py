"""Which devices a cycle looks at: none of nodes that have too few of them for one pod."""

from dataclasses import replace

import pytest

from kube.devices.selectors import CelSelectors
from scheduling.cycle import Settings
from scheduling.devices.counting import counting as count
from scheduling.devices.node_devices import LOOK
from scheduling.devices.node_index import DeviceFacts
from scheduling.devices.selection import Rules
from scheduling.devices.steps import OutOfSteps, StepBudget
from scheduling.model.devices.resource_slice import Device, DeviceContent
from scheduling.model.devices.selectors import Answer
from scheduling.model.verdict import Admitted, Reason, Refusal
from scheduling.placement.claimed_devices import DEVICE_STEPS
from tests.builders import columns, gang, group, node
from tests.scheduling.devices.builders import (
    DRIVER,
    RULES,
    TextSelectors,
    claim,
    counters,
    device,
    exactly,
    on_node,
    partition,
    slice_of,
)
from tests.scheduling.test_cycle_devices import claiming, decide, facts, gpus, nodes_of, workers

NAMES = [f"n{at:02}" for at in range(40)]
WORLD = columns(*(node(each) for each in NAMES))
ALL = {each: [f"gpu-{at}" for at in range(4)] for each in NAMES[:-1]}
TYPED = claiming(claim(exactly("type=X")))


class Counting(TextSelectors):
    """Counts how often a device is looked at."""

    def __init__(self) -> None:
        self.asked = 0

    def evaluate(self, selector: str, device: DeviceContent) -> Answer:
        self.asked += 1
        return super().evaluate(selector, device)


def typed(count: int) -> list[Device]:
    return [device(f"gpu-{at}", type="X") for at in range(count)]


def counting(known: DeviceFacts) -> tuple[DeviceFacts, Counting]:
    selectors = Counting()
    return replace(known, rules=Rules(RULES.classes, selectors, RULES.features)), selectors


def test_nodes_whose_devices_are_all_taken_are_not_looked_at() -> None:
    """The head may go to them all the same; one of them stands for all."""
    known, selectors = counting(facts(dict.fromkeys(NAMES, typed(4)), taken=ALL))
    found, memory = decide(WORLD, known, workers("g", 4, TYPED))
    assert nodes_of(found["g"])["workers"] == {"n39": 4}
    assert selectors.asked <= 8
    found, _ = decide(WORLD, known, workers("h", 5, TYPED), memory=memory)
    assert isinstance(found["h"], Refusal)
    assert selectors.asked < 16


def test_nodes_whose_devices_are_promised_are_not_looked_at() -> None:
    known, selectors = counting(facts(dict.fromkeys(NAMES[:2], typed(4))))
    first, second = workers("a", 4, TYPED), workers("b", 4, TYPED, created=1.0)
    found, _ = decide(WORLD, known, first, second)
    assert all(isinstance(each, Admitted) for each in found.values())
    assert selectors.asked == 8


def test_a_claim_with_many_alternatives_is_looked_at_as_far_as_the_steps_of_a_gang_go() -> None:
    """Each of 256 alternatives has a selector, and may be meant for any of 5,000 devices."""
    known, selectors = counting(facts(dict.fromkeys(NAMES, typed(128))))
    kinds = [[exactly(f"type={at}-{n}", name=f"{n}") for n in range(8)] for at in range(32)]
    found, memory = decide(WORLD, known, workers("g", 1, claiming(claim(*map(tuple, kinds)))))
    refused = found["g"]
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.UNDECIDED
    assert "the steps of the search were used up" in refused.message
    most = Settings().search_steps // DEVICE_STEPS // LOOK
    assert most // 2 < selectors.asked < most + 128
    assert isinstance(decide(WORLD, known, workers("h", 1, TYPED), memory=memory)[0]["h"], Admitted)


def test_counting_devices_for_many_requests_costs_steps() -> None:
    many = (claim(*[exactly(f"type={at}") for at in range(32)]),)
    steps = StepBudget(1000)
    with pytest.raises(OutOfSteps):
        count([many], on_node(*typed(128)), RULES, steps)


def test_nodes_whose_partitions_are_promised_are_left_out() -> None:
    """One device of each is left, which those who ask for halves do not get."""
    halves = [partition(f"x{at}", memory=2, type="X") for at in range(2)]
    devices = [partition("whole", memory=4, type="Y"), *halves]
    slices = [
        each
        for name in NAMES
        for each in (slice_of(devices, name, of=2), counters(name, gpu_0=4, of=2))
    ]
    gangs = [workers(f"g{at}", 1, TYPED, created=float(at)) for at in range(8)]
    found, memory = decide(WORLD, replace(facts({}), slices=slices), *gangs)
    there = [next(iter(nodes_of(each)["workers"])) for each in found.values()]
    assert sorted(there) == sorted([*NAMES[:4], *NAMES[:4]])
    claims = TYPED.restrictions.claims
    assert memory.room.devices is not None
    most = memory.room.devices.most_on((claims,), claims, WORLD.nodes, WORLD.index)
    assert most[:4].tolist() == [0] * 4
    assert min(most[4:]) == 2


def test_devices_that_are_shared_are_enough_for_any_number_of_pods() -> None:
    """Each pod takes a share of it."""
    shared = Device("s", DeviceContent(DRIVER, allow_multiple_allocations=True))
    found, _ = decide(WORLD, facts({"n00": [shared]}), workers("g", 3, claiming(claim(exactly()))))
    assert nodes_of(found["g"])["workers"] == {"n00": 3}


def test_what_a_request_wants_that_is_not_modelled_may_be_devices_of_others() -> None:
    admin = claim(replace(exactly(), unsupported=("adminAccess",)))
    known = facts({"n00": gpus(1)}, taken={"n00": ["gpu-0"]})
    found, _ = decide(WORLD, known, workers("g", 2, claiming(admin)))
    assert isinstance(found["g"], Refusal)
    assert found["g"].reason is Reason.UNSUPPORTED


def test_of_a_class_that_does_not_exist_it_is_told_though_no_node_is_looked_at() -> None:
    lost = claim(replace(exactly(), device_class="lost"))
    found, _ = decide(WORLD, facts({}), gang("g", group("w", 1, claiming(lost))))
    assert isinstance(found["g"], Refusal)
    assert "DeviceClass lost does not exist" in found["g"].message


def test_devices_that_selectors_see_alike_are_asked_about_once() -> None:
    """The selector reads no names of theirs, so it is evaluated once for all nodes."""
    text = f'device.driver == "{DRIVER}"'
    selectors = CelSelectors()
    rules = Rules(RULES.classes, selectors, RULES.features)
    known = replace(facts(dict.fromkeys(NAMES, gpus(4))), rules=rules)
    decide(WORLD, known, gang("g", group("w", 160, claiming(claim(exactly(text))))))
    [answers] = rules.answers.values()
    assert list(answers.values()) == [True]

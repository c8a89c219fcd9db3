"""Numbers at the edge of 64 bits, which the API server takes: a cycle answers, and says why not."""

import pytest

from scheduling.model.devices.resource_claim import ClaimSpec
from scheduling.model.verdict import Admitted, Reason, Refusal
from tests.builders import columns, node
from tests.scheduling.devices.builders import claim, exactly, shared, some
from tests.scheduling.test_cycle_devices import ONE, claiming, decide, facts, gpus, workers

LARGEST = 2**63 - 1
HUGE = [
    (claim(exactly(count=2**62)),),
    (claim(exactly(count=LARGEST), exactly(count=LARGEST)),),
    (claim(exactly(count=LARGEST)), claim(exactly(count=LARGEST))),
    (claim((exactly(count=LARGEST), exactly(count=2**62))),),
]
WORLD = columns(node("a"), node("b"))


@pytest.mark.parametrize("claims", HUGE)
def test_a_claim_for_more_devices_than_one_may_have_is_refused(
    claims: tuple[ClaimSpec, ...],
) -> None:
    found, _ = decide(WORLD, facts({"a": gpus(2)}), workers("g", 2, claiming(*claims)))
    refused = found["g"]
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.NO_FEASIBLE_NODE
    assert refused.message.endswith("a claim asks for more than 32 devices")


@pytest.mark.parametrize("claims", HUGE)
def test_such_a_pod_on_its_way_takes_no_devices(claims: tuple[ClaimSpec, ...]) -> None:
    known = facts({"a": gpus(2), "b": gpus(2)}, pending={"b": ((claims, 3),)})
    found, _ = decide(WORLD, known, workers("g", 2, claiming(ONE)))
    assert isinstance(found["g"], Admitted)


def test_the_smallest_shares_of_the_largest_devices_add_up() -> None:
    """A node is enough for more of them than 64 bits count."""
    known = facts({"a": [shared(f"x{at}", memory=2**62) for at in range(4)]})
    pod = claiming(claim(some(memory=1)))
    found, memory = decide(WORLD, known, workers("first", 2, pod))
    assert isinstance(found["first"], Admitted)
    found, _ = decide(WORLD, known, workers("second", 2, pod), memory=memory)
    assert isinstance(found["second"], Admitted)

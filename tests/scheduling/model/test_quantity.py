"""Quantities and the request formula."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from scheduling.model.amounts import sorted_requests
from scheduling.model.quantity import BadQuantity, allocatable_amount, request_amount
from scheduling.model.shape.pod_requests import ContainerRequests, pod_requests


@pytest.mark.parametrize(
    ("resource", "text", "up", "down"),
    [
        pytest.param("cpu", "500m", 500, 500, id="milli cpu is the unit of cpu"),
        pytest.param("cpu", "2", 2000, 2000, id="a whole cpu is a thousand milli"),
        pytest.param("cpu", "1e3", 1_000_000, 1_000_000, id="an exponent scales"),
        pytest.param("cpu", "0.1m", 1, 0, id="part of a milli cpu rounds up to ask, down to offer"),
        pytest.param("cpu", "1n", 1, 0, id="a nano cpu rounds up to ask, down to offer"),
        pytest.param("memory", "1Gi", 2**30, 2**30, id="binary suffixes are powers of 1024"),
        pytest.param("memory", "1.5Ki", 1536, 1536, id="binary suffixes take fractions"),
        pytest.param("memory", "1G", 10**9, 10**9, id="decimal suffixes are powers of 1000"),
        pytest.param("memory", "100m", 1, 0, id="a tenth of a byte rounds"),
        pytest.param("memory", "1E", 10**18, 10**18, id="E alone is a suffix"),
        pytest.param("memory", "1E3", 1000, 1000, id="E with digits is an exponent"),
        pytest.param("memory", "12e-1", 2, 1, id="an exponent may be negative"),
        pytest.param("memory", "+1e+2", 100, 100, id="signs may be plus"),
        pytest.param("pods", ".5", 1, 0, id="the whole part may be left out"),
        pytest.param("pods", "5.", 5, 5, id="the fraction may be left out after the dot"),
        pytest.param("pods", "-0", 0, 0, id="minus zero is zero"),
        pytest.param("pods", "0e999999999", 0, 0, id="zero with a huge exponent is zero"),
        pytest.param("pods", "1e-999999999", 1, 0, id="a tiny amount is still an amount"),
        pytest.param("memory", str(2**63 - 1), 2**63 - 1, 2**63 - 1, id="the largest int64 is in"),
    ],
)
def test_amount(resource: str, text: str, up: int, down: int) -> None:
    """Each form of a quantity becomes an exact whole amount."""
    assert request_amount(resource, text) == up
    assert allocatable_amount(resource, text) == down


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "+", "-", "Ki", "e3", " 1", "1 ", "1 Gi", "1_000", "1,5", "1e", "1e3Ki", "1Zi"),
        *("1ki", "1K", "NaN", "Infinity", "0x10", "1e1.5", "--1", "\uff11", "\u0663", "1\n"),
    ],
)
def test_what_is_no_quantity_is_refused_by_its_text(text: str) -> None:
    """Only the grammar passes; the message repeats the text and says what is allowed."""
    with pytest.raises(BadQuantity, match="not a Kubernetes quantity") as caught:
        request_amount("memory", text)
    assert repr(text) in str(caught.value)
    assert "allowed is" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param("-1", "is negative", id="negative"),
        pytest.param("-1m", "is negative", id="negative and small"),
        pytest.param("8Ei", "is too large", id="2^63"),
        pytest.param("1e400", "is too large", id="a large exponent"),
        pytest.param("1e999999999", "is too large", id="a huge exponent"),
        pytest.param("1e" + "9" * 100, "is too large", id="an absurd exponent"),
        pytest.param("9" * 200, "not a Kubernetes quantity", id="a text without end"),
    ],
)
def test_amounts_out_of_range_are_refused(text: str, fault: str) -> None:
    """Nothing hangs or allocates; the fault is named."""
    for amount in (request_amount, allocatable_amount):
        with pytest.raises(BadQuantity, match=fault):
            amount("memory", text)


def test_cpu_overflows_a_thousand_times_earlier() -> None:
    """10^16 cpu are 10^19 milli and no int64."""
    assert request_amount("memory", "1e16") == 10**16
    with pytest.raises(BadQuantity, match="too large"):
        request_amount("cpu", "1e16")


SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
NUMBERS = st.from_regex(r"[0-9]{1,12}(\.[0-9]{0,6})?|\.[0-9]{1,6}", fullmatch=True)
EXPONENTS = st.builds("{}{}".format, st.sampled_from("eE"), st.integers(-12, 12))
TEXTS = st.builds("{}{}".format, NUMBERS, st.sampled_from(SUFFIXES) | EXPONENTS)


@given(TEXTS, st.sampled_from(["cpu", "memory"]))
def test_amounts_agree_with_the_client_library(text: str, resource: str) -> None:
    """On valid texts the amount is the client library's Decimal, rounded as asked."""
    exact = Decimal(str(parse_quantity(text))) * (1000 if resource == "cpu" else 1)
    down = int(exact)
    up = down + (exact > down)
    for amount, expected in ((request_amount, up), (allocatable_amount, down)):
        if expected < 2**63:
            assert amount(resource, text) == expected
        else:
            with pytest.raises(BadQuantity):
                amount(resource, text)


@given(st.text(max_size=12))
def test_no_text_raises_anything_else(text: str) -> None:
    """Whatever is written, the answer is an amount or a BadQuantity."""
    try:
        assert 0 <= request_amount("cpu", text) < 2**63
    except BadQuantity as fault:
        assert repr(text) in str(fault)  # noqa: PT017


def one(restartable: bool = False, **requests: int) -> ContainerRequests:
    return ContainerRequests(requests, restartable)


@pytest.mark.parametrize(
    ("containers", "init", "overhead", "pod_level", "expected"),
    [
        pytest.param(
            [one(cpu=1), one(cpu=2, memory=5)],
            [],
            {},
            {},
            {"cpu": 3, "memory": 5},
            id="containers add up",
        ),
        pytest.param(
            [one(cpu=1)], [one(cpu=5)], {}, {}, {"cpu": 5}, id="a larger init container rules"
        ),
        pytest.param(
            [one(cpu=3)],
            [one(cpu=2), one(cpu=2)],
            {},
            {},
            {"cpu": 3},
            id="init containers run one by one",
        ),
        pytest.param(
            [one(cpu=3)],
            [one(True, cpu=2)],
            {},
            {},
            {"cpu": 5},
            id="a side-car runs beside the containers",
        ),
        pytest.param(
            [one(cpu=1)],
            [one(True, cpu=2), one(cpu=4)],
            {},
            {},
            {"cpu": 6},
            id="an init container runs beside the side-cars before it",
        ),
        pytest.param(
            [one(cpu=1)],
            [one(cpu=4), one(True, cpu=2)],
            {},
            {},
            {"cpu": 4},
            id="but not beside those after it",
        ),
        pytest.param(
            [one(cpu=1)],
            [one(True, cpu=2), one(True, cpu=3)],
            {},
            {},
            {"cpu": 6},
            id="side-cars add up",
        ),
        pytest.param(
            [one(cpu=1)],
            [one(True, cpu=2), one(True, cpu=3), one(cpu=4)],
            {},
            {},
            {"cpu": 9},
            id="an init container runs beside all the side-cars before it",
        ),
        pytest.param(
            [one(cpu=3)],
            [],
            {"cpu": 1, "memory": 7},
            {},
            {"cpu": 4, "memory": 7},
            id="overhead comes on top",
        ),
        pytest.param(
            [one(cpu=3, memory=9)],
            [],
            {},
            {"cpu": 2},
            {"cpu": 2, "memory": 9},
            id="pod level overrides, downwards too",
        ),
        pytest.param(
            [one(cpu=3)],
            [],
            {"cpu": 1},
            {"cpu": 2},
            {"cpu": 3},
            id="overhead comes on top of pod level",
        ),
        pytest.param(
            [ContainerRequests({"hugepages-2Mi": 4})],
            [],
            {},
            {"hugepages-2Mi": 8},
            {"hugepages-2Mi": 8},
            id="huge pages have a pod level",
        ),
        pytest.param(
            [ContainerRequests({"nvidia.com/gpu": 1})],
            [],
            {},
            {"nvidia.com/gpu": 2},
            {"nvidia.com/gpu": 1},
            id="devices have none",
        ),
        pytest.param([], [], {}, {}, {}, id="no container asks for nothing"),
    ],
)
def test_pod_requests(
    containers: list[ContainerRequests],
    init: list[ContainerRequests],
    overhead: dict[str, int],
    pod_level: dict[str, int],
    expected: dict[str, int],
) -> None:
    """The formula of component-helpers' PodRequests."""
    assert pod_requests(containers, init, overhead, pod_level) == expected


def test_pod_requests_leaves_its_arguments_alone() -> None:
    """Side-cars are summed in values of our own."""
    side_car = one(True, cpu=2)
    pod_requests([one(cpu=1)], [side_car, one(cpu=1)], {}, {})
    assert side_car.requests == {"cpu": 2}


def test_a_sum_beyond_int64_is_a_bad_quantity() -> None:
    """Two huge containers fit one by one and not together."""
    huge = one(memory=2**62)
    with pytest.raises(BadQuantity, match="sum of a pod's requests"):
        pod_requests([huge, huge], [], {}, {})


def test_sorted_requests_drops_zeros() -> None:
    """Equal requests look equal, whatever was written as 0."""
    assert sorted_requests({"memory": 1, "cpu": 2, "gpu": 0}) == (("cpu", 2), ("memory", 1))

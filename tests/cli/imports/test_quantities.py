"""Amounts keep their unit, and nothing is rounded."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.imports.outcome import Fault
from cli.imports.quantities import exact, spelled
from scheduling.model.quantity import request_amount


@pytest.mark.parametrize(
    ("amount", "like", "text"),
    [
        (Fraction(195 * 2**20), "1045Mi", "195Mi"),
        (Fraction(2**20) / 2, "1Gi", 2**19),
        (Fraction(1, 2), "4", "500m"),
        (Fraction(3, 2), "1500m", "1500m"),
        (Fraction(0), "4Gi", 0),
        (Fraction(1, 10**9), 1, "1n"),
    ],
)
def test_a_difference_is_written_in_the_unit_that_it_was_taken_from(
    amount: Fraction, like: str, text: str
) -> None:
    assert spelled(amount, like) == text


@pytest.mark.parametrize(
    "text", ["0.1n", "1e-10", "1e99", "9223372036854775807", "-1", "", "1.2.3"]
)
def test_what_a_gang_queue_could_not_hold_is_refused(text: str) -> None:
    with pytest.raises(Fault, match=r"quota: '.*' is not valid; allowed: a quantity that is not"):
        exact(text, "quota", "cpu")


@given(
    st.from_regex(r"[0-9]{1,4}(\.[0-9]{1,3})?(|m|k|M|G|Ki|Mi|Gi|e[0-3])", fullmatch=True),
    st.sampled_from(["1", "1m", "1Ki", "1Mi", "1k"]),
)
def test_what_is_spelled_is_the_same_amount_to_the_coordinator(text: str, like: str) -> None:
    amount = exact(text, "cpu")
    assert exact(spelled(amount, like), "cpu") == amount
    assert request_amount("cpu", str(spelled(amount, like))) == request_amount("cpu", text)

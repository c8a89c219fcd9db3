"""Which tolerations cover which taints."""

import pytest

from scheduling.model.constraints import Toleration
from scheduling.model.node import Taint
from scheduling.model.tolerations import tolerates
from tests.builders import taint, toleration


@pytest.mark.parametrize(
    ("given", "by", "expected"),
    [
        pytest.param(taint("gpu"), (), False, id="nothing tolerates nothing"),
        pytest.param(
            taint("gpu", "a"), (toleration("gpu", value="a"),), True, id="Equal compares the value"
        ),
        pytest.param(
            taint("gpu", "a"),
            (toleration("gpu", value="b"),),
            False,
            id="Equal refuses another value",
        ),
        pytest.param(
            taint("gpu", "a"),
            (toleration("gpu", operator="", value="a"),),
            True,
            id="no operator is Equal",
        ),
        pytest.param(
            taint("gpu", "a"),
            (toleration("gpu", operator="Exists"),),
            True,
            id="Exists takes any value",
        ),
        pytest.param(
            taint("gpu"), (toleration("cpu", operator="Exists"),), False, id="the key must match"
        ),
        pytest.param(
            taint("gpu"),
            (toleration(operator="Exists"),),
            True,
            id="no key with Exists takes everything",
        ),
        pytest.param(
            taint("gpu", "a"),
            (toleration(value="a"),),
            True,
            id="no key with Equal compares the value alone",
        ),
        pytest.param(
            taint("gpu", effect="NoExecute"),
            (toleration("gpu", effect="NoSchedule"),),
            False,
            id="the effect must match",
        ),
        pytest.param(
            taint("gpu", effect="NoExecute"),
            (toleration("gpu"),),
            True,
            id="no effect takes every effect",
        ),
        pytest.param(
            taint("n", "5"),
            (toleration("n", operator="Gt", value="3"),),
            False,
            id="Gt is off by default in 1.36",
        ),
        pytest.param(
            taint("n", "5"),
            (toleration("n", operator="Lt", value="9"),),
            False,
            id="Lt is off by default in 1.36",
        ),
    ],
)
def test_tolerates(given: Taint, by: tuple[Toleration, ...], expected: bool) -> None:
    """ToleratesTaint of k8s.io/api, with its feature gate as 1.36 ships it."""
    assert tolerates(by, given) is expected

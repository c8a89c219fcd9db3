"""Label selectors and single requirements, judged as the API server and the scheduler do."""

import pytest

from scheduling.model.constraints import Requirement
from scheduling.model.labels import holds, selects
from tests.builders import require


@pytest.mark.parametrize(
    ("requirement", "value", "expected"),
    [
        (require("k", "In", "a", "b"), "a", True),
        (require("k", "In", "a", "b"), None, False),
        (require("k", "NotIn", "a"), "b", True),
        (require("k", "NotIn", "a"), None, True),
        (require("k", "NotIn", "a"), "a", False),
        (require("k", "Exists"), "", True),
        (require("k", "Exists"), None, False),
        (require("k", "DoesNotExist"), None, True),
        (require("k", "DoesNotExist"), "", False),
        (require("k", "Gt", "9"), "10", True),
        (require("k", "Lt", "9"), "10", False),
        (require("k", "Lt", "9"), "nine", False),
        (require("k", "Gt"), "1", False),
        (require("k", "Odd", "1"), "1", False),
    ],
)
def test_requirement(requirement: Requirement, value: str | None, *, expected: bool) -> None:
    assert holds(requirement, value) is expected


def test_a_selector_needs_all_of_its_requirements() -> None:
    selector = (require("app", "In", "ray"), require("tier", "DoesNotExist"))
    assert selects(selector, {"app": "ray"})
    assert not selects(selector, {"app": "ray", "tier": "gold"})
    assert selects((), {})

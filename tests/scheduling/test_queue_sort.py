"""The order in which gangs are decided."""

from scheduling.queue_sort import in_order
from tests.builders import gang


def test_gangs_are_ordered_by_priority_then_age_then_name() -> None:
    """The order is total, so it never depends on the order of arrival."""
    gangs = [
        gang("late", created=2),
        gang("b", created=1),
        gang("a", created=1),
        gang("a", created=1, namespace="other"),
        gang("urgent", priority=5, created=9),
    ]
    expected = ["team/urgent", "other/a", "team/a", "team/b", "team/late"]
    for given in (gangs, gangs[::-1]):
        assert [str(each.key) for each in in_order(given)] == expected

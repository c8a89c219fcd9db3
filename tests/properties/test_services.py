"""Whom default constraints count, against asking every Service of what is there at the time."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from scheduling.company import Labels
from scheduling.model import Requirement
from scheduling.services import Selector, Service, ServiceTable

NAMESPACES = st.sampled_from(["team", "team", "others"])
LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xxxy"), max_size=3).map(
    lambda found: tuple(sorted(found.items()))
)
SERVICES = st.builds(Service, NAMESPACES, st.sampled_from("rst"), LABELS)
EVENTS = st.lists(st.tuples(SERVICES, st.sampled_from([True, True, False])), max_size=12)


def slowly(there: Sequence[Service], namespace: str, labels: Labels) -> Selector:
    """Follow `GetPodServices` and `DefaultSelector` line by line."""
    merged: dict[str, str] = {}
    for service in there:
        if service.namespace != namespace:
            continue
        if all(dict(labels).get(key) == value for key, value in service.selector):
            merged |= dict(service.selector)
    return tuple(Requirement(key, "In", (value,)) for key, value in sorted(merged.items()))


@given(EVENTS, NAMESPACES, LABELS)
def test_whom_a_pod_is_spread_with_follows_from_the_services_that_are_left(
    events: list[tuple[Service, bool]], namespace: str, labels: Labels
) -> None:
    table, there = ServiceTable(), dict[tuple[str, str], Service]()
    for service, is_put in events:
        key = service.namespace, service.name
        if is_put:
            assert table.put(service) is (there.get(key) != service)
            there[key] = service
        else:
            table.drop(*key)
            there.pop(key, None)
        assert table.selector(namespace, labels) == slowly([*there.values()], namespace, labels)

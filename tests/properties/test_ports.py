"""Made-up amounts for host ports against the rule of kube-scheduler."""

from hypothesis import given
from hypothesis import strategies as st

from scheduling.fit import count_fit
from scheduling.ports import HostPort, port_amounts
from tests.builders import columns, node, shape

PORTS = st.lists(
    st.tuples(
        st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2", "::"]),
        st.sampled_from(["", "TCP", "UDP"]),
        st.sampled_from([80, 81]),
    ),
    max_size=4,
)


def clash(one: HostPort, other: HostPort) -> bool:
    """Say whether two ports get in each other's way, word by word."""
    addresses = {one[0] or "0.0.0.0", other[0] or "0.0.0.0"}
    same = (one[1] or "TCP", one[2]) == (other[1] or "TCP", other[2])
    return same and (len(addresses) == 1 or "0.0.0.0" in addresses)


@given(st.lists(PORTS, max_size=4), PORTS)
def test_a_pod_fits_where_none_of_its_ports_is_taken(
    offered: list[list[HostPort]], wanted: list[HostPort]
) -> None:
    """Whatever stands on the node, as long as it may stand there together."""
    standing: list[list[HostPort]] = []
    for each in offered:
        if not any(clash(a, b) for a in each for other in standing for b in other):
            standing.append(each)
    used: dict[str, int] = {}
    for each in standing:
        for name, amount in port_amounts(each).items():
            used[name] = used.get(name, 0) + amount
    asking = shape(ports=wanted)
    [fitting] = count_fit(asking, columns(node("n"), used={"n": used}, asked=[asking]))
    taken = any(clash(a, b) for a in wanted for other in standing for b in other)
    assert bool(fitting) is not taken

"""The index of holders against adding up pods one by one."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.holder import Holder
from scheduling.state.holder_index import HolderIndex

HOLDERS = [Holder("Job", "team", name) for name in "abc"] + [Holder("Namespace", "", "team")]
PODS = st.lists(
    st.tuples(
        st.sampled_from(HOLDERS),
        st.sampled_from([f"n{at}" for at in range(5)]),
        st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(1, 9), min_size=1),
        st.integers(1, 3),
        st.booleans(),
    ),
    max_size=40,
)
NODES = st.sets(st.sampled_from([f"n{at}" for at in range(7)]))


@given(PODS, NODES)
def test_sums_follow_pods_that_come_and_go(
    pods: list[tuple[Holder, str, dict[str, int], int, bool]], nodes: set[str]
) -> None:
    """Whatever the order, and with numbers used again for holders and nodes that are gone."""
    table, there = HolderIndex(), []
    for pod in pods:
        holder, node, amounts, count, _ = pod
        table.use(holder, node, amounts.items(), count)
        there.append(pod)
        if there and there[0][4]:
            gone, where, had, many, _ = there.pop(0)
            table.use(gone, where, had.items(), -many)
    for resource in ("cpu", "memory", "gpu", "unknown"):
        wanted: Counter[Holder] = Counter()
        for holder, node, amounts, count, _ in there:
            if node in nodes:
                wanted[holder] += amounts.get(resource, 0) * count
        sums = table.held(resource, sorted(nodes))
        expected = sorted((-n, holder) for holder, n in wanted.items() if n)
        for most in (1, 3, len(HOLDERS) + 1):
            found = [(-share.amount, share.holder) for share in sums.largest(most)]
            assert found == expected[:most]
        assert (len(sums), sums.total()) == (len(expected), -sum(n for n, _ in expected))

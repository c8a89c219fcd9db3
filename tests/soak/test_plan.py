"""The plan of a soak comes from its seed alone, and holds every fault."""

from tests.soak.plan import CREATE, FAULTS, NODE_FAULTS, NODE_RETURNS, draw


def test_the_same_seed_gives_the_same_plan() -> None:
    """A violation could not be looked for again otherwise."""
    assert draw(7, 2, 60) == draw(7, 2, 60)
    assert draw(7, 2, 60).deeds != draw(8, 2, 60).deeds


def test_two_minutes_hold_every_fault() -> None:
    """Dealt like cards: none is left out by chance."""
    for seed in range(20):
        assert {deed.kind for deed in draw(seed, 2, 60).deeds} >= set(FAULTS)


def test_deeds_are_in_order_and_end_with_the_plan() -> None:
    """Names are given once."""
    plan = draw(3, 10, 200)
    assert [deed.at for deed in plan.deeds] == sorted(deed.at for deed in plan.deeds)
    assert max(deed.at for deed in plan.deeds) <= plan.seconds
    names = [deed.order.name for deed in plan.deeds if deed.order and deed.kind == CREATE]
    assert len(set(names)) == len(names) > 100


def test_every_node_returns_before_it_fails_again() -> None:
    """Otherwise two faults of a node would undo each other, and the end would lack nodes."""
    away: set[int] = set()
    for deed in draw(5, 10, 20).lane("nodes"):
        if deed.kind in NODE_FAULTS:
            assert deed.number not in away
            away.add(deed.number)
        else:
            assert deed.kind == NODE_RETURNS
            away.remove(deed.number)
    assert not away

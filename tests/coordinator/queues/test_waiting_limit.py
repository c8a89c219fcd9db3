"""Which of many waiting gangs of one namespace are decided."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator.queues.waiting_limit import WaitingLimit
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason


def key(name: str, namespace: str = "team") -> GangKey:
    return GangKey(namespace, name)


def limit_of(most: int, *names: str) -> WaitingLimit:
    """A limit at which gangs wait that came one second after the other."""
    limit = WaitingLimit(most)
    for at, name in enumerate(names):
        limit.note(key(name), float(at))
    return limit


def beyond(limit: WaitingLimit, names: str) -> str:
    return "".join(name for name in names if limit.is_beyond(key(name)))


def test_the_oldest_gangs_of_a_namespace_are_within_the_limit() -> None:
    assert beyond(limit_of(2, *"abcd"), "abcd") == "cd"


def test_gangs_of_other_namespaces_do_not_count() -> None:
    limit = limit_of(2, *"abcd")
    assert limit.note(key("z", "other"), 99.0) == set()
    assert not limit.is_beyond(key("z", "other"))


def test_the_next_one_comes_up_when_an_older_one_ends() -> None:
    limit = limit_of(2, *"abcd")
    assert limit.note(key("a"), None) == {key("c")}
    assert beyond(limit, "bcd") == "d"
    assert limit.note(key("d"), None) == set()
    assert limit.note(key("b"), None) == set()


def test_an_older_one_that_comes_late_pushes_the_youngest_out() -> None:
    limit = limit_of(2, *"ab")
    assert limit.note(key("c"), -1.0) == {key("b")}
    assert beyond(limit, "abc") == "b"


def test_nothing_moves_where_nothing_changed() -> None:
    limit = limit_of(2, *"abc")
    assert limit.note(key("a"), 0.0) == limit.note(key("none"), None) == set()


def test_the_refusal_names_the_limit_and_how_many_are_older() -> None:
    refusal = limit_of(2, *"abcde").refusal(key("e"))
    assert refusal.reason is Reason.NAMESPACE_LIMIT
    assert refusal.message == (
        "4 older gangs of namespace team wait, and of one namespace the 2 oldest that wait are "
        "decided: this gang comes up as those start or end"
    )


NOTES = st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | st.integers(0, 3)), max_size=30)


@given(NOTES, st.integers(1, 4))
def test_what_moved_is_what_is_told(notes: list[tuple[str, int | None]], most: int) -> None:
    limit, came = WaitingLimit(most), dict[str, int]()
    for name, at in notes:
        before = beyond(limit, "abcdef")
        moved = limit.note(key(name), None if at is None else float(at))
        came.pop(name, None)
        came |= {} if at is None else {name: at}
        after = beyond(limit, "abcdef")
        assert sorted(after) == sorted(sorted(came, key=lambda each: (came[each], each))[most:])
        assert {each.name for each in moved} == (set(before) ^ set(after)) - {name}

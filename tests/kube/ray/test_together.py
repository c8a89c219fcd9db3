"""A group of gangs that start together is read of annotations, or refused by the value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects import names
from kube.ray.together import Together, together_asked, together_faults

PAIR = {names.TOGETHER: "pair", names.TOGETHER_SIZE: "2"}
BESIDE = (names.TOGETHER_SIZE, names.TOGETHER_END, names.TOGETHER_TOPOLOGY)


@pytest.mark.parametrize("size", ["2", "16"])
@pytest.mark.parametrize("end", ["", "Keep", "All"])
def test_a_group_has_a_name_a_size_and_an_end(size: str, end: str) -> None:
    said = {**PAIR, names.TOGETHER_SIZE: size, **({names.TOGETHER_END: end} if end else {})}
    assert together_asked(said) == Together("pair", int(size), end or "Keep")
    assert not list(together_faults(said))


def test_members_share_a_domain_unless_each_is_to_have_its_own() -> None:
    each = together_asked({**PAIR, names.TOGETHER_TOPOLOGY: "Each"})
    assert each is not None
    assert each.parts_domains
    one = together_asked({**PAIR, names.TOGETHER_TOPOLOGY: "One"})
    assert one == together_asked(PAIR)
    assert one is not None
    assert not one.parts_domains


def test_without_annotations_a_gang_starts_alone() -> None:
    assert together_asked({}) is None
    assert not list(together_faults({}))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((names.TOGETHER_SIZE, each) for each in ("", "1", "17", "1000", "two", "-2", "2.0", "٢")),
        *((names.TOGETHER, each) for each in ("", "A", "a.b", "-a", "a-", "a" * 64, "a/b")),
        *((names.TOGETHER_END, each) for each in ("", "all", "keep", "Keep, All")),
        *((names.TOGETHER_TOPOLOGY, each) for each in ("", "one", "Own", "One, Each")),
        (names.CREATE_PODS, "always"),
    ],
)
def test_a_bad_value_is_one_fault_of_its_key(key: str, value: str) -> None:
    [fault] = together_faults({**PAIR, key: value})
    assert (fault.key, fault.value) == (key, value)
    assert together_asked({**PAIR, key: value}) is None


@pytest.mark.parametrize("key", BESIDE)
def test_what_is_said_beside_no_name_is_a_fault(key: str) -> None:
    [fault] = together_faults({key: "2"})
    assert fault.allowed == "beside muster.dev/together only, which names the group"


@given(st.dictionaries(st.sampled_from([*PAIR, *BESIDE]), st.text(max_size=70)))
def test_any_values_are_a_group_or_faults(said: dict[str, str]) -> None:
    asked = together_asked(said)
    assert asked is None or not list(together_faults(said))

"""Every event and every action is the same after it was written as JSON and read again."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from appwrapper.gang.stand_in import StandIn
from coordinator.messages.actions import Action
from coordinator.messages.events import ClusterSeen, Event, FactsSeen, PodSeen
from coordinator.replay import forms
from coordinator.replay.forms import KINDS, Forms, UnreadableValueError, UnwritableTypeError
from coordinator.state_settings import StateSettings
from kube.objects.base import ObjectMeta
from kube.objects.ray import RayCluster
from scheduling.model.constraints import NodeTerm, NodeTerms
from scheduling.model.volume import Claim, Volume
from tests.examples import examples
from tests.replay.built import values

NAMED = Path(__file__).with_name("kinds.txt")
FORMS = Forms()
MESSAGES = [*get_args(Event), *get_args(Action), StateSettings]
UNIONS = {each: union for union in (Event, Action) for each in get_args(union)}


def again(hint: Any, value: Any) -> Any:
    """The value as it is read from its own text."""
    write, read = FORMS.of(hint)
    text = msgspec.json.encode(value if write is None else write(value))
    data = msgspec.json.decode(text)
    return data if read is None else read(data)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(
    parent=examples(8),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
def test_every_message_is_read_as_it_was_written(kind: type, data: st.DataObject) -> None:
    value = data.draw(values(kind))
    found = again(UNIONS.get(kind, kind), value)
    assert type(found) is kind
    assert found == value


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_set_is_read_as_the_kind_that_it_was(kind: Any) -> None:
    """Equality does not tell them apart, and only one of them can be a key."""
    assert type(again(kind[str], kind({"a", "b"}))) is kind


def test_kinds_and_fields_of_messages_outlive_renames() -> None:
    """A class that is renamed goes into KINDS, a field needs another FORMAT; new ones come here."""
    now = {f"{KINDS.get(each.__name__, each.__name__)}: {_fields(each)}" for each in MESSAGES}
    assert now == set(NAMED.read_text(encoding="utf-8").splitlines())


def _fields(kind: type) -> str:
    return " ".join(each.name for each in fields(kind))


def test_a_renamed_class_is_written_and_read_as_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "KINDS", {"StandIn": "Wrapped"})
    write, read = Forms().of(ClusterSeen)
    assert write is not None
    assert read is not None
    written = write(ClusterSeen(StandIn(ObjectMeta(name="a"))))
    assert written["cluster"]["is"] == "Wrapped"
    assert type(read(written).cluster) is StandIn


def test_what_is_empty_is_not_written_and_what_a_default_says_is() -> None:
    write, _ = FORMS.of(Volume)
    assert write is not None
    assert write(Volume("v")) == {"name": "v", "kind": "Filesystem"}


def test_a_class_says_its_name_where_others_may_stand() -> None:
    cluster, wrapped = RayCluster(ObjectMeta(name="a")), StandIn(ObjectMeta(name="a"), phase="Held")
    assert type(again(ClusterSeen, ClusterSeen(cluster)).cluster) is RayCluster
    assert again(ClusterSeen, ClusterSeen(wrapped)).cluster == wrapped
    assert again(Event, FactsSeen(Claim)) == FactsSeen(Claim)


def test_a_tuple_of_a_class_of_its_own_stays_one() -> None:
    @dataclass
    class Holder:
        terms: NodeTerms

    found = again(Holder, Holder(NodeTerms([NodeTerm()])))
    assert (found.terms, type(found.terms)) == ((NodeTerm(),), NodeTerms)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), 10**36, 0.1])
def test_numbers_that_json_has_no_word_for_are_kept(value: float) -> None:
    @dataclass
    class Holder:
        size: float

    assert again(Holder, Holder(value)).size == value


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"is": "NodeGone", "name": "n", "more": 1}, "NodeGone has no more"),
        ({"is": "Nothing"}, "'Nothing' is none of"),
        ({"pod": {}}, "does not say what it is"),
        ({"is": "PodSeen", "pod": 7}, "7 where a ObservedPod belongs"),
        ({"is": "PodGone", "namespace": "a"}, "missing 2 required"),
        ({"is": "PodGone", "namespace": "a", "name": "b", "uid": "c", "teller": "x"}, "'x' is not"),
        (["PodSeen"], "does not say what it is"),
    ],
)
def test_json_of_another_type_is_refused_and_named(data: Any, said: str) -> None:
    _, read = FORMS.of(Event)
    assert read is not None
    with pytest.raises(UnreadableValueError, match=said):
        read(data)


@pytest.mark.parametrize(("length", "quoted"), [(58, "x' where"), (59, r"x\.\.\. where")])
def test_json_that_is_refused_is_quoted_up_to_60_characters(length: int, quoted: str) -> None:
    _, read = FORMS.of(Event)
    assert read is not None
    with pytest.raises(UnreadableValueError, match=quoted):
        read({"is": "PodSeen", "pod": "x" * length})


@dataclass
class _OfCall:
    call: Callable[[], None]


@dataclass
class _OfTwoLists:
    either: tuple[int, ...] | list[str]


@dataclass
class _OfBytes:
    data: bytes


@pytest.mark.parametrize("kind", [_OfCall, _OfTwoLists, _OfBytes])
def test_a_field_that_cannot_be_written_is_named_at_once(kind: type) -> None:
    with pytest.raises(UnwritableTypeError, match=rf"{kind.__name__}\.\w+: "):
        Forms().of(kind)


def test_a_value_of_a_class_that_does_not_belong_is_refused() -> None:
    write, _ = FORMS.of(PodSeen)
    assert write is not None
    with pytest.raises(UnwritableTypeError, match="a Volume where a ObservedPod belongs"):
        write(PodSeen(Volume("v")))  # type: ignore[arg-type]


def test_a_field_may_be_shown_otherwise() -> None:
    forms = Forms({(ObjectMeta, "annotations"): lambda found: dict.fromkeys(found, "")})
    write, _ = forms.of(RayCluster)
    assert write is not None
    written = write(RayCluster(ObjectMeta(name="a", annotations={"secret": "x"})))
    assert written["metadata"] == {"name": "a", "annotations": {"secret": ""}}


class _Word(Enum):
    A = "a"


def test_members_hashes_and_maps_with_other_keys_are_kept() -> None:
    @dataclass
    class Holder:
        words: frozenset[_Word]
        counts: dict[tuple[str, int], int]
        key: object

    value = Holder(frozenset({_Word.A}), {("a", 1): 2}, "k")
    assert again(Holder, value) == value


def test_a_set_is_written_in_an_order_that_no_hash_decides() -> None:
    """Actions are compared as they are written."""
    write, _ = FORMS.of(StandIn)
    assert write is not None
    names = [f"pod-{at}" for at in range(20)]
    assert write(StandIn(bare=frozenset(names)))["bare"] == sorted(names)

"""Keys that a user has misspelt are told, with what was meant."""

import pytest

from kube.objects import names
from kube.ray.known_keys import (
    ANNOTATIONS,
    ANYWHERE,
    LABELS,
    PREFIX,
    WRAPPED,
    WRITTEN,
    keys_of_use,
    unknown_keys,
)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("min-replica", "min-replicas"),
        ("topology-require", "topology-required"),
        ("prioritty-class", "priority-class"),
        ("replica-topology", "replica-topology-required"),
        ("gnag", "gang"),
        ("Queue", "queue"),
    ],
)
def test_a_misspelt_key_is_told_with_the_nearest_one(wrong: str, meant: str) -> None:
    said = f"muster.dev/{wrong} is not a key of Muster; did you mean muster.dev/{meant}?"
    assert unknown_keys({f"muster.dev/{wrong}": "1"}, {}) == said
    assert unknown_keys({}, {f"muster.dev/{wrong}": "1"}) == said


def test_a_key_that_is_like_none_is_told_with_all_there_are() -> None:
    said = unknown_keys({}, {"muster.dev/x": ""})
    assert said.startswith("muster.dev/x is not a key of Muster; those are muster.dev/ and ")
    for key in ANYWHERE | ANNOTATIONS:
        assert key.removeprefix(PREFIX) in said


def test_what_is_read_as_an_annotation_only_is_told_as_a_label() -> None:
    said = unknown_keys({names.MIN_REPLICAS: "4"}, {names.TOPOLOGY_REQUIRED: "zone"})
    assert said == "the label muster.dev/min-replicas is not read; write it as an annotation"


def test_what_is_read_as_a_label_only_is_told_as_an_annotation() -> None:
    said = unknown_keys({}, {names.HEAD_FAULT_TOLERANCE: "built-in"})
    assert said == f"the annotation {names.HEAD_FAULT_TOLERANCE} is not read; write it as a label"


def test_every_key_of_muster_is_known_and_those_of_others_are_no_concern_of_ours() -> None:
    ours = {key for key in vars(names).values() if str(key).startswith(PREFIX)}
    ours -= {names.API_VERSION, names.QUEUE_FINALIZER, names.WRAPPED_OBJECTS}
    ours -= {names.STAMP, names.STAMP_READ}  # they are written on Leases alone
    assert ours == ANYWHERE | ANNOTATIONS | LABELS | WRITTEN | WRAPPED
    theirs = {"example.com/gang": "", "muster.dev": "", "muster.development/x": ""}
    labels, annotations = dict.fromkeys(ANYWHERE | LABELS, "x"), dict.fromkeys(ours - LABELS, "x")
    assert unknown_keys(labels | theirs, annotations) == ""


def test_what_tenants_can_make_it_say_is_bounded() -> None:
    keys = {f"muster.dev/{'x' * 300}{number}": "" for number in range(5000)}
    said = unknown_keys({}, keys)
    assert len(said) < 1000
    assert said.endswith("; and more")
    assert said.count("is not a key") == 3


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 200])
def test_what_is_kept_says_the_same_as_what_was_written(count: int) -> None:
    known = dict.fromkeys(ANYWHERE | ANNOTATIONS, "1")
    labels = {f"muster.dev/x{number:03}": "1" for number in reversed(range(count))} | known
    annotations = {f"muster.dev/y{number:03}": "1" for number in range(count)} | known
    kept = [dict.fromkeys(keys_of_use(each), "1") for each in (labels, annotations)]
    assert unknown_keys(*kept) == unknown_keys(labels, annotations)
    assert all(each.items() >= known.items() for each in kept)
    assert max(map(len, kept)) <= len(known) + 4

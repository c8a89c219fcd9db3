"""Annotations say how patient an AppWrapper is; what cannot be read leaves the default."""

import pytest

from appwrapper.spec.retries import PREFIX, Patience, may_retry, patience


def test_the_defaults_are_codeflares() -> None:
    assert patience({}) == (Patience(60, 300, 60, 90, 600, 0, 604800, 3), ())


@pytest.mark.parametrize(
    ("key", "text", "changed"),
    [
        ("admissionGracePeriodDuration", "2m", {"admission": 120}),
        ("warmupGracePeriodDuration", "90s", {"warmup": 90}),
        ("failureGracePeriodDuration", "0s", {"failure": 0}),
        ("retryPausePeriodDuration", "1h", {"pause": 3600}),
        ("forcefulDeletionGracePeriodDuration", "48h", {"deletion": 86400}),
        ("deletionOnFailureGracePeriodDuration", "5s", {"failed_ttl": 5}),
        ("successTTLDuration", "1000h", {"success_ttl": 604800}),
        ("retryLimit", "0", {"retries": 0}),
    ],
)
def test_an_annotation_changes_one_of_them(key: str, text: str, changed: dict[str, int]) -> None:
    found, faults = patience({PREFIX + key: text})
    usual = Patience()
    assert faults == ()
    assert {name: getattr(found, name) for name in changed} == changed
    same = {name for name in usual.__slots__ if name not in changed}
    assert all(getattr(found, name) == getattr(usual, name) for name in same)


@pytest.mark.parametrize("text", ["", "soon", "-5s", "-1", "1.5", "9" * 12, "٣"])
def test_what_cannot_be_read_is_named(text: str) -> None:
    keys = {f"{PREFIX}retryLimit": text, f"{PREFIX}retryPausePeriodDuration": text}
    found, faults = patience(keys)
    assert found == Patience()
    assert [each.field.removeprefix("metadata.annotations[") for each in faults] == [
        f"{PREFIX}retryPausePeriodDuration]",
        f"{PREFIX}retryLimit]",
    ]


def test_retries_end() -> None:
    assert [may_retry(Patience(retries=2), n) for n in range(4)] == [True, True, False, False]

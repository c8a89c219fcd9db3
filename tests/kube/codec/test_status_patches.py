"""Known fields are written whole, and what another release knows stays."""

from typing import Any

import jsonpatch
import msgspec
import pytest

from kube.codec.status_patches import fields_patch
from kube.objects.gang import GangStatus

Json = dict[str, Any]


def patched(found: Json, status: Json) -> Json:
    before = msgspec.convert(found.get("status", {}), GangStatus)
    done: Json = jsonpatch.apply_patch(found, fields_patch("status", status, before))
    return done


@pytest.mark.parametrize("found", [{}, {"status": {}}], ids=["absent", "empty"])
def test_a_first_status_is_added(found: Json) -> None:
    assert patched(found, {"phase": "Queued"}) == {"status": {"phase": "Queued"}}


def test_known_fields_are_replaced_or_go_and_unknown_ones_stay() -> None:
    found = {"phase": "Queued", "position": 3, "placement": {"epoch": 1, "queue": "q"}}
    future = {"future": {"a": [1]}, "futureCount": 7}
    status = {"phase": "Admitted", "placement": {"epoch": 2}, "decided": 1}
    assert patched({"status": {**found, **future}}, status) == {"status": {**status, **future}}


def test_what_stays_as_it_is_is_not_written_again() -> None:
    before = msgspec.convert({"phase": "Queued", "position": 3, "message": "soon"}, GangStatus)
    patch = fields_patch("status", {"phase": "Queued", "position": 2}, before)
    assert sorted(patch, key=lambda each: str(each["path"])) == [
        {"op": "remove", "path": "/status/message"},
        {"op": "add", "path": "/status/position", "value": 2},
    ]


def test_a_zero_is_written_where_it_is_said() -> None:
    before = msgspec.convert({"phase": "Queued", "position": 3}, GangStatus)
    patch = fields_patch("status", {"phase": "Queued", "position": 0}, before)
    assert patch == [{"op": "add", "path": "/status/position", "value": 0}]


def test_what_another_program_writes_stays_as_it_is() -> None:
    told = {"expectedStart": {"basis": "Unknown", "asOf": "2026-01-01T00:00:00Z"}}
    assert patched({"status": told}, {"phase": "Queued"}) == {"status": {"phase": "Queued", **told}}
    found = {"phase": "Queued", "position": 3, **told}
    assert patched({"status": found}, {"phase": "Queued"}) == {
        "status": {"phase": "Queued", **told}
    }

"""Builds the JSON patches that write spec and status of Muster's own objects.

Each known field that changes is replaced, and one that is not written any more is removed. A field
that another release knows and this one does not stays: while programs are updated one after the
other, the older must not undo what the newer wrote. So does a field `of_others`, which another
program writes. That holds for fields of spec and status
themselves; what lies below one of them, such as an item of a list, is written whole.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kube.codec.pod_patches import JsonPatch, Operation


def fields_patch(part: str, written: Mapping[str, Any], before: msgspec.Struct) -> JsonPatch:
    """Return what makes `written` all that is known of `part` (spec or status).

    `before` is the part as it was read, of the very version that is patched. One that is empty may
    not be there at all, so it is added.
    """
    known = msgspec.structs.fields(type(before))
    unknown = sorted(written.keys() - {each.encode_name for each in known})
    assert not unknown, f"unknown: {unknown}"
    if before == type(before)():
        return [_add(f"/{part}", dict(written))]
    return list(_changes(f"/{part}", written, before))


def _changes(path: str, written: Mapping[str, Any], before: msgspec.Struct) -> Iterator[Operation]:
    """Compare as structs, in which what is absent and what is empty look the same."""
    after, empty = msgspec.convert(written, type(before)), type(before)()
    of_others = getattr(type(before), "of_others", ())
    for field in (e for e in msgspec.structs.fields(type(before)) if e.name not in of_others):
        was, is_now, nothing = (getattr(each, field.name) for each in (before, after, empty))
        where, name = f"{path}/{field.encode_name}", field.encode_name
        if name in written and (is_now != was or is_now == nothing):
            yield _add(where, written[name])
        elif name not in written and was != nothing:
            yield {"op": "remove", "path": where}


def _add(path: str, value: object) -> Operation:
    return {"op": "add", "path": path, "value": value}

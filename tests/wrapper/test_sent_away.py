"""AppWrappers that another cluster runs are left alone, whatever their Gang says."""

import msgspec
import pytest

from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.objects.base import ObjectMeta
from wrapper.reading import wrapper_of

SPEC = msgspec.Raw(b'{"components": []}')


@pytest.mark.parametrize(
    ("note", "is_ours"), [({}, True), ({names.DISPATCHED: "true"}, False)], ids=["here", "sent"]
)
def test_what_is_noted_as_sent_away_is_none_of_ours(note: dict[str, str], is_ours: bool) -> None:
    notes = {names.CREATED_BY: '{"username": "ann"}', **note}
    meta = ObjectMeta("a", "team", "u", annotations=notes)
    found = AppWrapper(names.CODEFLARE_V1BETA2, "AppWrapper", meta, SPEC)
    assert (wrapper_of(found, names.CODEFLARE_V1BETA2) is not None) is is_ours

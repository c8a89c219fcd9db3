"""An Event is on the object whose user it is for."""

import pytest

from coordinator.messages.actions import EmitEvent, Regarding
from coordinator.shell.writes.event_writes import object_event
from kube.objects import names
from tests.coordinator.world import key


@pytest.mark.parametrize(
    ("gang", "version", "kind", "name"),
    [
        ("a", names.RAY_API_VERSION, "RayCluster", "a"),
        ("appwrapper.w", names.CODEFLARE_V1BETA2, "AppWrapper", "w"),
        ("appwrapper-mcad.w", names.MCAD_V1BETA1, "AppWrapper", "w"),
    ],
)
def test_it_is_on_what_the_gang_is_made_for(gang: str, version: str, kind: str, name: str) -> None:
    found = object_event(EmitEvent(key(gang), "uid-a", True, "Reason", "text"))
    assert (found.namespace, found.api_version, found.kind) == ("team", version, kind)
    assert (found.name, found.uid) == (name, "uid-a")


def test_it_is_on_another_object_where_the_action_names_one() -> None:
    head = Regarding("v1", "Pod", "a-head", "uid-head")
    found = object_event(EmitEvent(key("a"), "uid-a", True, "Reason", "text", head))
    assert (found.kind, found.name, found.uid) == ("Pod", "a-head", "uid-head")

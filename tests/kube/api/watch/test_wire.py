"""Objects that are nested as deeply as an API server takes them."""

from appwrapper.gang.watched import AppWrapperReading
from kube.api.watch.events import Unreadable
from kube.api.watch.wire import Wire
from kube.objects.app_wrapper import AppWrapper

DEEP = 9_900
TEXT = b'{"metadata": {"name": "a"}, "spec": ' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}"


def test_a_deep_object_of_a_tenant_stops_no_watch() -> None:
    wire = Wire(AppWrapper)
    wire.event(b'{"type": "ADDED", "object": ' + TEXT + b"}")
    _, items = wire.page(b'{"metadata": {}, "items": [' + TEXT + b"]}")
    found = wire.item(items[0])
    assert not isinstance(found, Unreadable)
    assert AppWrapperReading()(found).metadata.name == "a"

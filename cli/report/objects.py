"""Fields of Events, as reports read them."""

from kube.objects.base import ObjectMeta, Slim


class Event(Slim, frozen=True):
    """An Event of the core group."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None

"""Turns watch events into events of the state machine."""

from typing import Any

from dispatcher.messages import Event, Gone, Seen
from kube.api.watch.events import Changed, Deleted, Sink, WatchEvent
from runtime.controller.workers import Feed


def sink(feed: Feed[Event], where: str) -> Sink[Any]:
    """Return what feeds the changes that are seen on the manager, or on a member."""

    def take(batch: list[WatchEvent[Any]]) -> None:
        feed([event for told in batch if (event := _event(told, where)) is not None])

    return take


def _event(told: WatchEvent[Any], where: str) -> Event | None:
    match told:
        case Changed(obj=obj):
            return Seen(where, obj)
        case Deleted(obj=obj):
            return Gone(where, obj)
        case _:
            return None

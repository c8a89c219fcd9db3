"""A reflector under test, and what it is told."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import msgspec
from hypothesis import strategies as st

from kube.api.backoff import Backoff
from kube.api.client import Client
from kube.api.resources import Resource
from kube.api.watch.events import (
    Blind,
    Changed,
    Deleted,
    Key,
    Sighted,
    Synced,
    Unreadable,
    WatchEvent,
)
from kube.api.watch.pace import Pace, Selection
from kube.api.watch.reflector import Reflector, wait_synced

PODS = Resource("", "v1", "pods")

FAST = Pace(
    backoff=Backoff(initial=0.01, maximum=0.05),
    healthy=30.0,
    shortest=0.02,
    silence=60.0,
    settle=0.05,
    call_timeout=60.0,
)
PATIENCE = 60.0
"""Seconds for what takes none on an idle machine; less than the silence that ends a watch."""


class Meta(msgspec.Struct, rename="camel", frozen=True):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class Pod(msgspec.Struct, frozen=True):
    metadata: Meta
    value: int = 0


def pod(name: str, uid: str = "u", version: int = 1, value: int = 0) -> Pod:
    return Pod(Meta(name, uid, str(version), "ns"), value)


class Mirror:
    """A sink that applies the events, and notes them."""

    def __init__(self) -> None:
        self.objects: dict[Key, Pod] = {}
        self.batches: list[list[WatchEvent[Pod]]] = []
        self.sight: list[tuple[bool, frozenset[str]]] = []
        """Whether we may see, and the names that were told when that changed."""

    def __call__(self, events: list[WatchEvent[Pod]]) -> None:
        match events:
            case [Blind() | Sighted() as told]:
                names = frozenset(name for _, name in self.objects)
                self.sight.append((isinstance(told, Sighted), names))
                return
        self.batches.append(events)
        for event in events:
            self._apply(event)

    def _apply(self, event: WatchEvent[Pod]) -> None:
        match event:
            case Changed(obj):
                self.objects[obj.metadata.namespace, obj.metadata.name] = obj
            case Deleted(obj):
                gone = self.objects.pop((obj.metadata.namespace, obj.metadata.name))
                assert gone == obj, "what is deleted is what was told"
            case Unreadable() | Synced() | Blind() | Sighted():
                pass

    @property
    def events(self) -> list[WatchEvent[Pod]]:
        return [event for batch in self.batches for event in batch]

    @property
    def deleted(self) -> list[str]:
        return [event.obj.metadata.name for event in self.events if isinstance(event, Deleted)]


class Running:
    """A reflector at work, and the mirror of what it said."""

    def __init__(self, client: Client, *, selection: Selection | None = None, pace: Pace = FAST):
        self.mirror = Mirror()
        self.reflector = Reflector(
            client, PODS, Pod, self.mirror, selection=selection or Selection(), pace=pace
        )

    def has(self, **values: int) -> Callable[[], bool]:
        """Return a condition: exactly these pods, with these values, in store and mirror."""

        def holds() -> bool:
            store = {name: kept.value for (_, name), kept in self.reflector.store.items()}
            return store == values and self.mirror.objects == self.reflector.store

        return holds


@contextlib.asynccontextmanager
async def watching(
    client: Client, *, selection: Selection | None = None, pace: Pace = FAST, sync: bool = True
) -> AsyncIterator[Running]:
    running = Running(client, selection=selection, pace=pace)
    task = asyncio.create_task(running.reflector.run())
    try:
        if sync:
            await wait_synced(running.reflector, timeout=PATIENCE)
        yield running
        assert running.mirror.objects == running.reflector.store
    finally:
        ended_by_itself = task.done()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert not ended_by_itself


# --- the comparison, for all histories ------------------------------------------------------

names = st.sampled_from(["a", "b", "c"])
pods = st.builds(pod, names, st.sampled_from(["u", "v"]), st.integers(1, 3))


metas = pods.map(lambda one: one.metadata)
odd = metas.map(lambda meta: Unreadable("ns", meta.name, meta.uid, "odd"))
lists = st.lists(st.one_of(pods, metas, odd), max_size=5).map(tuple)

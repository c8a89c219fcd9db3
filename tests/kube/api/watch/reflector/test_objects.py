"""What the reflector makes of objects, and that its events add up to its store."""

import asyncio
import gc
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kube.api.client import Client
from kube.api.resources import Resource
from kube.api.watch.events import (
    Changed,
    Deleted,
    Key,
    Synced,
    Unreadable,
)
from kube.api.watch.pace import Selection
from kube.api.watch.reflector import Reflector, wait_synced
from kube.api.watch.store import Picture, Store
from runtime.slicing import settle_heap
from tests.kube.api.watch.reflector.watched import (
    FAST,
    PATIENCE,
    PODS,
    Meta,
    Mirror,
    Pod,
    lists,
    metas,
    pod,
    pods,
    watching,
)
from tests.kube.fake_api import (
    FakeApi,
    eventually,
)

NODES = Resource("", "v1", "nodes", namespaced=False)


async def test_cluster_scoped_objects_have_no_namespace(fake: FakeApi, client: Client) -> None:
    fake.put("nodes", "n", namespace="")
    mirror = Mirror()
    reflector = Reflector(client, NODES, Pod, mirror, pace=FAST)
    task = asyncio.create_task(reflector.run())
    await wait_synced(reflector, timeout=PATIENCE)
    assert list(reflector.store) == [("", "n")]
    task.cancel()


async def test_a_projection_keeps_little_and_leaves_out(either: FakeApi, client: Client) -> None:
    either.put("pods", "a", value=1)
    either.put("pods", "b", value=-1)

    def positive(seen: Pod) -> Pod | None:
        if seen.value == 13:
            raise ValueError("unlucky")
        return seen if seen.value > 0 else None

    mirror = Mirror()
    reflector = Reflector(client, PODS, Pod, mirror, project=positive, pace=FAST)
    task = asyncio.create_task(reflector.run())
    await wait_synced(reflector, timeout=PATIENCE)
    assert set(mirror.objects) == {("ns", "a")}
    either.put("pods", "a", value=-2)
    either.put("pods", "b", value=2)
    await eventually(lambda: set(mirror.objects) == {("ns", "b")})
    either.put("pods", "c", value=13)
    await eventually(lambda: reflector.counters.unreadable == 1)
    assert mirror.objects == reflector.store
    task.cancel()


# --- an object that is not of its type ------------------------------------------------------


async def test_an_odd_object_is_told_and_stops_nothing(either: FakeApi, client: Client) -> None:
    either.put("pods", "good", value=1)
    either.put("pods", "odd", value="text")
    async with watching(client) as running:
        odd = [event for event in running.mirror.events if isinstance(event, Unreadable)]
        assert [event.name for event in odd] == ["odd"]
        either.put("pods", "good", value="text too")
        either.put("pods", "next", value=3)
        await eventually(running.has(good=1, next=3))
        either.remove("pods", "good")
        either.put("pods", "odd", value=2)
        await eventually(running.has(odd=2, next=3))


class Bare(msgspec.Struct):
    """The least of a pod."""

    metadata: Meta


async def test_what_is_not_of_its_type_is_read_as_the_lesser_one(
    either: FakeApi, client: Client
) -> None:
    """In a list and in a watch; what is not even that is told."""

    def read(seen: Pod | Bare) -> Pod:
        return seen if isinstance(seen, Pod) else Pod(seen.metadata, value=-1)

    either.put("pods", "odd", value="text")
    mirror = Mirror()
    reflector = Reflector(
        client, PODS, Pod, mirror, project=read, selection=Selection(bare=Bare), pace=FAST
    )
    task = asyncio.create_task(reflector.run())
    await wait_synced(reflector, timeout=PATIENCE)
    assert {key: seen.value for key, seen in mirror.objects.items()} == {("ns", "odd"): -1}
    either.put("pods", "new", value="text")
    await eventually(lambda: ("ns", "new") in mirror.objects)
    assert mirror.objects["ns", "new"].value == -1
    either.put("pods", "odd", value=3)
    await eventually(lambda: mirror.objects["ns", "odd"].value == 3)
    assert reflector.counters.unreadable == 0
    task.cancel()


async def test_an_object_of_five_megabytes_arrives(either: FakeApi, client: Client) -> None:
    either.put("pods", "a", value=1, blob="x" * (5 << 20))
    async with watching(client) as running:
        either.put("pods", "a", value=2, blob="y" * (5 << 20))
        await eventually(running.has(a=2))


async def test_another_uid_under_one_name_is_a_deletion_first(
    either: FakeApi, client: Client
) -> None:
    either.put("pods", "a", value=1, uid="first")
    async with watching(client) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        either.objects.pop(("pods", "ns", "a"))
        either.put("pods", "a", value=2, uid="second")
        either.compact()
        await eventually(running.has(a=2))
        kinds = [type(event) for event in running.mirror.events if not isinstance(event, Synced)]
        assert kinds == [Changed, Deleted, Changed]


async def test_what_the_sink_raises_ends_the_run(fake: FakeApi, client: Client) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("a bug")

    reflector: Reflector[Pod] = Reflector(client, PODS, Pod, broken, pace=FAST)
    with pytest.raises(RuntimeError, match="a bug"):
        await asyncio.wait_for(reflector.run(), PATIENCE)


def test_a_settled_heap_is_not_looked_at_again() -> None:
    try:
        settle_heap()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


Told = Pod | Meta | Unreadable


def pictured(told: Sequence[Told], store: Store[Pod]) -> Picture[Pod]:
    """Return a list in which this was told, one after the other."""
    picture = Picture(store.objects)
    for step in told:
        match step:
            case Pod():
                picture.change(step)
            case Meta():
                picture.drop(step)
            case Unreadable():
                picture.confuse(step)
    return picture


@given(st.lists(st.one_of(pods, metas, lists), max_size=8))
@example([pod("a"), (pod("a"), pod("a").metadata)])  # told as it was, and gone before the end
def test_the_events_always_add_up_to_the_store(
    steps: list[Pod | Meta | tuple[Told, ...]],
) -> None:
    store: Store[Pod] = Store()
    mirror = Mirror()
    for step in steps:
        match step:
            case Pod():
                mirror(store.change(step))
            case Meta():
                held = store.objects.get(("ns", step.name))
                mirror(store.drop(step))
                other = held is not None and held.metadata.uid != step.uid
                assert (store.objects.get(("ns", step.name)) is held) == (other or held is None)
            case _:
                before = dict(store.objects)
                mirror(store.replace(pictured(step, store)))
                assert store.objects == listed(step, before)
        assert mirror.objects == store.objects


def listed(told: Sequence[Told], before: dict[Key, Pod]) -> dict[Key, Pod]:
    """Return what is there after a list: the last word on each name; what cannot be read stays."""
    last = {one.metadata.name if isinstance(one, Pod) else one.name: one for one in told}
    kept: dict[Key, Pod] = {}
    for name, one in last.items():
        old = before.get(("ns", name))
        if isinstance(one, Pod):
            kept["ns", name] = one
        elif isinstance(one, Unreadable) and old is not None and old.metadata.uid == one.uid:
            kept["ns", name] = old
    return kept


@given(lists)
def test_the_same_list_twice_tells_nothing_but_what_cannot_be_read(told: Sequence[Told]) -> None:
    store: Store[Pod] = Store()
    store.replace(pictured(told, store))
    again = store.replace(pictured(told, store))
    assert all(isinstance(event, Unreadable) for event in again)

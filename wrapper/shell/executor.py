"""Carries actions out, and feeds back how they ended.

One task for each action, a bounded number at a time. Right before each write the term is asked: a
process that was stopped for a minute must not send what it decided before. What only informs a user
lets all else pass.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec
import structlog

from appwrapper.phases import Phase
from appwrapper.spec.items import read
from kube.api.client import Client, Resource
from kube.api.errors import Conflict, KubeError, NotFound, is_of_what_goes
from kube.api.resources import GANGS, PODS
from kube.objects.app_wrapper import AppWrapper
from kube.ray.wrapped_by import gang_name
from wrapper.lifecycle import may_start
from wrapper.messages import (
    Action,
    Created,
    CreateItems,
    Deed,
    Deleted,
    DeleteItems,
    Ended,
    Event,
    GangSignal,
    NotWritten,
    Read,
    ReadItems,
    Result,
    TellUser,
    Wrapper,
    WrapperKey,
    WriteStatus,
    Written,
)
from wrapper.metrics import Metrics
from wrapper.reading import WrappedGang, signal_of, wrapper_of
from wrapper.shell.events import EventWriter
from wrapper.shell.items import Items

log = structlog.get_logger()

AT_ONCE = 20
"""Items that are created or deleted before it is asked again whether they still should be."""

Feed = Callable[[Iterable[Event]], None]


class Leadership(Protocol):
    """The one question that is asked before each write."""

    def valid(self) -> bool:
        """Whether we may still write."""
        ...


class Executor:
    """Carries out the actions of one term; `apis` are the resources of AppWrappers by group."""

    def __init__(
        self,
        client: Client,
        term: Leadership,
        feed: Feed,
        *,
        apis: Mapping[str, Resource],
        identity: str,
        concurrency: int,
        metrics: Metrics,
    ) -> None:
        self._client = client
        self._term = term
        self._feed = feed
        self._apis = apis
        self._items = Items(client)
        self._events = EventWriter(client, identity)
        self._concurrency = concurrency
        self._metrics = metrics
        self._urgent: deque[Action] = deque()
        self._informing: deque[Action] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._broken = asyncio.Event()
        self._error: BaseException | None = None

    def submit(self, actions: Iterable[Action]) -> None:
        """Queue the actions, and start as many as may run."""
        for action in actions:
            informs = isinstance(action, TellUser) or (
                isinstance(action, WriteStatus) and action.informs
            )
            (self._informing if informs else self._urgent).append(action)
        self._start_some()

    async def run(self) -> None:
        """Wait for ever; a bug in an action comes out here, so that it ends the process."""
        await self._broken.wait()
        assert self._error is not None
        raise self._error

    async def close(self) -> None:
        """Send no more; the next term finds out what became of what was under way."""
        self._urgent.clear()
        self._informing.clear()
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _start_some(self) -> None:
        while len(self._running) < self._concurrency and (self._urgent or self._informing):
            action = (self._urgent or self._informing).popleft()
            task = asyncio.create_task(self._carry_out(action))
            self._running.add(task)
            task.add_done_callback(self._ended)
        self._metrics.waiting.set(len(self._urgent) + len(self._informing))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        self._error = self._error or task.exception()
        if self._error is not None:
            self._broken.set()
        self._start_some()

    async def _carry_out(self, action: Action) -> None:
        if not self._term.valid():
            return
        if isinstance(action, TellUser):
            await self._tell(action)
            return
        result = await self._do(action)
        self._feed([Ended(action.key, action.ticket, result)])

    async def _do(self, action: Deed) -> Result:
        match action:
            case WriteStatus():
                return await self._write(action)
            case CreateItems():
                return await self._create(action)
            case DeleteItems():
                return await self._delete(action)
            case ReadItems():
                return await self._read(action)

    # --- the status ---------------------------------------------------------------------------

    async def _write(self, action: WriteStatus) -> Result:
        what = "start" if action.starts else "status"
        try:
            if action.starts and not await self._still_placed(action.wrapper):
                return NotWritten("the Gang gave its placement back", action.wrapper)
            written = await self._client.json_patch(
                self._path(action.key, "status"), _operations(action), as_=AppWrapper
            )
        except KubeError as error:
            self._failed(what, error)
            return NotWritten(str(error), await self._known(action.key))
        self._done(what)
        found = wrapper_of(written, action.wrapper.api_version)
        return NotWritten("another controller's by now") if found is None else Written(found)

    async def _still_placed(self, wrapper: Wrapper) -> bool:
        """Ask the API server itself: what a watch told last may be over."""
        return may_start(wrapper, await self._signal(wrapper))

    async def _signal(self, wrapper: Wrapper) -> GangSignal | None:
        key = wrapper.key
        path = GANGS.path(key.namespace, gang_name(key.group, key.name))
        try:
            return signal_of(await self._client.get(path, as_=WrappedGang))
        except NotFound:
            return None

    async def _known(self, key: WrapperKey) -> Wrapper | None:
        """Read an AppWrapper of which a write failed; the watch tells where this fails too."""
        try:
            return self._reduced(key, await self._client.get(self._path(key), as_=AppWrapper))
        except KubeError:
            return None

    def _reduced(self, key: WrapperKey, found: AppWrapper) -> Wrapper | None:
        resource = self._apis[key.group]
        return wrapper_of(found, f"{resource.group}/{resource.version}")

    def _path(self, key: WrapperKey, subresource: str | None = None) -> str:
        return self._apis[key.group].path(key.namespace, key.name, subresource)

    # --- the items ----------------------------------------------------------------------------

    async def _create(self, action: CreateItems) -> Result:
        """Create some of the items as the AppWrapper has them now, if it is still to have them."""
        try:
            found = await self._client.get(self._path(action.key), as_=AppWrapper)
            now = self._reduced(action.key, found)
            if now is None or _changed(action.wrapper, now):
                return NotWritten("it changed", now)
            refusal = await self._items.may_create(found)
            if refusal is not None:
                return self._refused(Created(refusal=refusal))
        except KubeError as error:
            return Created(error=str(error))
        return await self._create_some(action, found)

    async def _create_some(self, action: CreateItems, found: AppWrapper) -> Created:
        made: set[int] = set()
        wrapped = read(found)
        for index in action.items[:AT_ONCE]:
            if not self._term.valid():
                break
            try:
                refusal = await self._items.create(found, wrapped, index)
            except KubeError as error:
                self._failed("create", error)
                return Created(frozenset(made), error=f"{wrapped.items[index].where}: {error}")
            if refusal is not None:
                return self._refused(Created(frozenset(made), refusal))
            self._done("create")
            made.add(index)
        return Created(frozenset(made))

    def _refused(self, result: Created) -> Created:
        assert result.refusal is not None
        self._metrics.refused.labels(str(result.refusal.lasts).lower()).inc()
        return result

    async def _delete(self, action: DeleteItems) -> Deleted:
        gone, said = set(), ""
        meta = action.wrapper.metadata
        for item in action.items:
            if not self._term.valid():
                break
            try:
                if await self._items.delete(meta.namespace, meta.uid, item):
                    gone.add(item)
                    continue
            except KubeError as error:
                self._failed("delete", error)
                said = str(error)
                continue
            self._done("delete")
        await self._force(action)
        return Deleted(frozenset(gone), said)

    async def _force(self, action: DeleteItems) -> None:
        """Delete pods as if their nodes had ended them; one that is gone needs nothing more."""
        for name, uid in action.pods:
            if not self._term.valid():
                return
            path = PODS.path(action.key.namespace, name)
            try:
                await self._client.delete(path, uid=uid, grace_period_seconds=0)
            except (NotFound, Conflict):
                continue
            except KubeError as error:
                self._failed("delete", error)
            else:
                self._done("delete")

    async def _read(self, action: ReadItems) -> Result:
        try:
            found = await self._client.get(self._path(action.key), as_=AppWrapper)
            now = self._reduced(action.key, found)
            if now is None or now.metadata.uid != action.wrapper.metadata.uid:
                return NotWritten("it changed", now)
            return await self._items.read(found, action.pods_left, action.completed)
        except KubeError as error:
            return Read(error=str(error))

    # --- what is told -------------------------------------------------------------------------

    async def _tell(self, action: TellUser) -> None:
        try:
            await self._events.write(action)
        except KubeError as error:
            self._failed("event", error)
        else:
            self._done("event")

    def _done(self, what: str) -> None:
        self._metrics.writes.labels(what, "done").inc()

    def _failed(self, what: str, error: KubeError) -> None:
        self._metrics.writes.labels(what, "failed").inc()
        if not is_of_what_goes(error):
            log.info("write failed", what=what, error=str(error))


def _operations(action: WriteStatus) -> list[dict[str, object]]:
    """Replace the status of this very version of the AppWrapper."""
    meta = action.wrapper.metadata
    return [
        {"op": "test", "path": "/metadata/uid", "value": meta.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": meta.resource_version},
        {"op": "add", "path": "/status", "value": msgspec.to_builtins(action.status)},
    ]


def _changed(decided: Wrapper, now: Wrapper) -> bool:
    """Say whether items must not be created any more that were to be."""
    return (
        now.metadata.uid != decided.metadata.uid
        or bool(now.metadata.deletion_timestamp)
        or now.status.phase != Phase.RESUMING
        or now.status.transition_count != decided.status.transition_count
        or now.contents != decided.contents
    )

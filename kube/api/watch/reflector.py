"""Lists and watches the objects of one resource, and reports what changed.

Four layers. `Wire` decodes, `Store` compares (pure), `Intake` follows what is told, `Reflector`
talks: list, watch from there, and begin again where the server says that we fell behind. Resource
versions are compared for equality only: within one watch the server keeps the order, and whatever
breaks the order (a refresh, a 410) goes through a whole new list. So nothing can roll an object
back, and it works for servers before 1.35 too, whose versions need not be numbers that can be
compared.

Invariant: applying the events given to the sink, in order, to an empty mapping always gives
exactly `Reflector.store`; a list is taken over whole or not at all.
"""

# A timeout is what a call here promises, so it is a parameter and no scope of the caller.
# ruff: noqa: ASYNC109

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar, overload

import msgspec
import structlog

from kube.api.backoff import pause
from kube.api.client import Client, selectors
from kube.api.errors import (
    ApiError,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    Timeout,
    Unreachable,
)
from kube.api.resources import Resource
from kube.api.watch.events import Blind, Key, Sighted, Sink, Synced, Watched, WatchEvent
from kube.api.watch.intake import Intake
from kube.api.watch.pace import EVERYTHING, USUAL, Counters, Pace, Selection
from kube.api.watch.store import Picture
from kube.api.watch.wire import Wire
from runtime.slicing import in_slices, one_slice

log = structlog.get_logger(__name__)

T = TypeVar("T", bound=Watched)
R = TypeVar("R", bound=Watched)


class Reflector(Generic[T]):
    """Keep `store` equal to the server's objects, and tell `sink` each change.

    `sink` is called in the event loop with the events that came together; it must not block, and
    what it raises ends `run`. `project` makes what is kept from what was decoded: None leaves the
    object out, a ValueError makes it Unreadable.
    """

    @overload
    def __init__(
        self,
        client: Client,
        resource: Resource,
        kind: type[T],
        sink: Sink[T],
        *,
        selection: Selection = ...,
        pace: Pace = ...,
        clock: Callable[[], float] = ...,
    ) -> None: ...
    @overload
    def __init__(
        self,
        client: Client,
        resource: Resource,
        kind: type[R],
        sink: Sink[T],
        *,
        project: Callable[[R], T | None],
        selection: Selection = ...,
        pace: Pace = ...,
        clock: Callable[[], float] = ...,
    ) -> None: ...
    def __init__(
        self,
        client: Client,
        resource: Resource,
        kind: type[Any],
        sink: Sink[T],
        *,
        project: Callable[[Any], T | None] = lambda obj: obj,
        selection: Selection = EVERYTHING,
        pace: Pace = USUAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._path = resource.path(selection.namespace)
        self._selection = selection
        self._selectors = selectors(selection.label_selector, selection.field_selector)
        self._wire: Wire[Any] = Wire(kind, selection.bare)
        self._sink = sink
        self._pace = pace
        self._clock = clock
        self._log = log.bind(resource=resource.plural)

        self.counters = Counters()
        self._intake: Intake[T] = Intake(project, self.counters, self._log, self._take_over)
        self._listing = False
        self._can_stream = True  # until the server says that it has no WatchList
        self._opened_at: float | None = None
        self._blind = False
        self._settling: asyncio.TimerHandle | None = None

        self._synced = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []  # refreshes that want a later list
        self._serving: list[asyncio.Future[None]] = []  # refreshes that this list answers
        self._scope: asyncio.Timeout | None = None  # what a refresh may interrupt

        self.last_contact: float | None = None
        self._last_sight: float | None = None  # the last contact before we went blind

    @property
    def store(self) -> dict[Key, T]:
        """The objects by namespace and name; always the same dict, to be read only."""
        return self._intake.store.objects

    @property
    def synced(self) -> bool:
        """Whether the store was complete once; how fresh it is says `last_contact`."""
        return self._synced.is_set()

    @property
    def blind(self) -> bool:
        """Whether changes may stay unseen now, as far as we know it ourselves."""
        return self._blind

    @property
    def told_until(self) -> float | None:
        """When the store was last known to be complete; None before the first contact.

        After a reconnect the store stays stale until the relist completes.
        """
        return self._last_sight if self._blind else self.last_contact

    @property
    def heard(self) -> bool:
        """Whether the watch that is open has told anything, were it a bookmark."""
        return self._intake.heard

    @property
    def bookmarks(self) -> bool:
        """Whether a bookmark came in the watch that is open, beside the one that ends its list."""
        return self._intake.bookmarks

    async def wait_synced(self) -> None:
        """Return when the first list is complete."""
        await self._synced.wait()

    async def refresh(self, timeout: float) -> None:
        """Return when the store is at least as new as this call; raises Timeout.

        The watch is given up for a new list, which the server answers from its newest state.
        A list already under way may be older than this call, so the next one counts.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._interrupt()
        try:
            async with asyncio.timeout(timeout):
                await done
        except TimeoutError as error:
            raise Timeout(f"{self._path}: no new list within {timeout} s") from error

    def reopen(self) -> bool:
        """Open the watch again from the last version that it told, and go on as before.

        For one that may be dead without a word: that costs a request and no list, but for a watch
        that has told nothing since it was opened. Its version may be one that the server does not
        know (`_was_deaf`), so all is listed. False where no watch is open that follows a list.
        """
        follows = self._opened_at is not None and not self._listing and bool(self._intake.position)
        if not follows or self._scope is None:
            return False
        if not self._intake.heard:
            self._intake.position = ""
        self.counters.reopened += 1
        self._interrupt()
        return True

    async def run(self) -> None:
        """List and watch until cancelled; no failure of the server ends this."""
        failures = 0
        while True:
            error = await self._attempt()
            lived = self._lived()
            if error is None and (self._waiting or lived >= self._pace.shortest):
                continue
            failures = self._failures_after(failures, lived, error)
            self._lose_sight()
            async with self._interruptible():
                await pause(self._pace.backoff, failures, error)

    def _failures_after(self, before: int, lived: float, error: KubeError | None) -> int:
        self.counters.failures += 1
        self._log.info("watch ended early", error=str(error), lived=round(lived, 1))
        # A watch that was cut but told us something has made progress: it pauses, no more.
        fresh_start = lived >= self._pace.healthy or (error is None and self._intake.heard)
        return 1 if fresh_start else before + 1

    async def _attempt(self) -> KubeError | None:
        """Follow the server for as long as one connection lasts; return what ended it."""
        self._opened_at = None
        self._intake.heard = self._intake.bookmarks = False
        try:
            async with self._interruptible():
                await self._list_and_watch()
        except KubeError as error:
            if _fell_behind(error) or self._was_deaf(error):
                self._intake.position = ""
            return error
        finally:
            self._intake.picture, self._listing = None, False
            if self._settling is not None:
                self._settling.cancel()
        return None

    async def _list_and_watch(self) -> None:
        if self._waiting:
            self._intake.position = ""
        if not self._intake.position:
            self._listing = True
            self._serving, self._waiting = self._serving + self._waiting, []
            try:
                if self._can_stream and await self._stream_all():
                    return
                await self._list_pages()
            except NotFound:
                if not self._selection.may_be_absent:
                    raise
                await self._do_without()
                return
        await self._follow({"resourceVersion": self._intake.position})

    async def _do_without(self) -> None:
        """Take a resource that the server does not know for an empty one, for a while."""
        self._take_over(Picture(self.store), "")
        self.last_contact = self._opened_at = self._clock()
        await asyncio.sleep(self._pace.absence)

    async def _stream_all(self) -> bool:
        """Let a watch begin with all objects; False when this server does not know how."""
        self._intake.picture = Picture(self.store)
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        try:
            await self._follow(query)
        except ApiError as error:
            if not _refuses_stream(error):
                raise
            self._can_stream = False
        except Timeout:
            # A server that goes silent before the end of the list may not know the option.
            self._can_stream = self._opened_at is None or self._intake.picture is None
            raise
        if self._can_stream and self._intake.picture is not None:
            raise Unreachable(f"{self._path}: ended before the list was complete", sent=True)
        return self._can_stream

    async def _list_pages(self) -> None:
        picture: Picture[T] = Picture(self.store)
        version = ""
        pages = self._client.list(
            self._path,
            label_selector=self._selection.label_selector,
            field_selector=self._selection.field_selector,
            metadata_only=self._selection.metadata_only,
            timeout=self._pace.call_timeout,
        )
        async for page in pages:
            self.last_contact = self._clock()
            version, items = self._wire.page(page)
            await in_slices(partial(self._gather_some, picture, iter(items)))
        self._take_over(picture, version)

    async def _follow(self, start: dict[str, str]) -> None:
        query = {**self._selectors, **start, "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(round(random.uniform(*self._pace.duration)))  # noqa: S311
        watch = self._client.stream_watch(
            self._path,
            query,
            silence=self._pace.silence,
            metadata_only=self._selection.metadata_only,
            timeout=self._pace.call_timeout,
        )
        async with watch as batches:
            self.last_contact = self._opened_at = self._clock()
            if self._blind and self._intake.picture is None:
                loop = asyncio.get_running_loop()
                self._settling = loop.call_later(self._pace.settle, self._regain_sight)
            async for lines in batches:
                self.last_contact = self._clock()
                await in_slices(partial(self._receive_some, iter(lines)))

    def _receive_some(self, lines: Iterator[bytes]) -> bool:
        """Take in a slice of the lines; False when none is left."""
        events: list[WatchEvent[T]] = []
        try:
            return one_slice(
                lines, lambda line: events.extend(self._intake.take(self._wire.event(line)))
            )
        finally:
            # What came before a pause or a broken line is in the store, so it must be told.
            self._tell(events)

    def _gather_some(self, picture: Picture[T], items: Iterator[msgspec.Raw]) -> bool:
        """Take in a slice of a page; False when none is left."""
        return one_slice(items, lambda item: self._intake.gather(picture, self._wire.item(item)))

    def _take_over(self, picture: Picture[T], version: str) -> None:
        self._intake.picture, self._intake.position, self._listing = None, version, False
        self.counters.relists += 1
        self._tell([*self._intake.store.replace(picture), Synced()])
        self._regain_sight()
        self._synced.set()
        for done in self._serving:
            if not done.done():
                done.set_result(None)
        self._serving = []
        if self._waiting:
            self._interrupt()

    def _lose_sight(self) -> None:
        if self.synced and not self._blind:
            self._blind, self._last_sight = True, self.last_contact
            self._tell([Blind()])

    def _regain_sight(self) -> None:
        if self._blind:
            self._blind = False
            self._tell([Sighted()])

    def _tell(self, events: list[WatchEvent[T]]) -> None:
        if events:
            self.counters.events += len(events)
            self._sink(events)

    def _was_deaf(self, error: KubeError) -> bool:
        # A watch from a version that a restored server has yet to reach is accepted and silent
        # for ever, without even bookmarks (measured on 1.36); a list is the way out.
        return isinstance(error, Timeout) and self._opened_at is not None and not self._intake.heard

    def _lived(self) -> float:
        return 0.0 if self._opened_at is None else self._clock() - self._opened_at

    def _interrupt(self) -> None:
        """End the watch or the pause under way, but no list: the next list must not starve."""
        if self._scope is not None and not self._listing:
            scope, self._scope = self._scope, None
            scope.reschedule(asyncio.get_running_loop().time())

    @contextlib.asynccontextmanager
    async def _interruptible(self) -> AsyncIterator[None]:
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._scope = scope
                yield
        except TimeoutError:
            if not scope.expired():
                raise
        finally:
            self._scope = None


def _fell_behind(error: KubeError) -> bool:
    # The second is what a server says that was restored from a backup older than our position.
    return isinstance(error, Gone) or "Too large resource version" in str(error)


def _refuses_stream(error: ApiError) -> bool:
    # 422 where the feature is off, 400 where the parameter is not known; some say 403, which
    # otherwise means that we may not watch, and then a list would not help.
    return isinstance(error, Invalid) or error.status == 400 or "sendInitialEvents" in str(error)


async def wait_synced(*reflectors: Reflector[Any], timeout: float) -> None:
    """Return when all of them have their first list; raises Timeout."""
    try:
        async with asyncio.timeout(timeout):
            for reflector in reflectors:
                await reflector.wait_synced()
    except TimeoutError as error:
        raise Timeout(f"not synced within {timeout} s") from error

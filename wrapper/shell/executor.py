"""Carries out actions, and feeds their results back to the state machine.

What only informs a user lets all else pass, for a second at most.
"""

import time
from collections.abc import Iterable, Mapping
from functools import partial

import msgspec
import structlog

from appwrapper.phases import Phase
from appwrapper.spec.items import read
from kube.api.client import Client
from kube.api.errors import Conflict, KubeError, NotFound, is_of_what_goes
from kube.api.event_recorder import EventRecorder, ObjectEvent
from kube.api.resources import GANGS, PODS, Resource
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.ray.wrapped_by import gang_name
from runtime.controller.workers import Feed, Leadership, Workers
from runtime.controller.write_lanes import Writes
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
from wrapper.shell.items import Items
from wrapper.steps import may_start

log = structlog.get_logger()

AT_ONCE = 20
"""Items that are created or deleted before it is asked again whether they still should be."""

REPORTER = "muster.dev/wrapper"


class Executor:
    """Carries out the actions of one term; `apis` are the resources of AppWrappers by group."""

    def __init__(
        self,
        client: Client,
        term: Leadership,
        feed: Feed[Event],
        *,
        apis: Mapping[str, Resource],
        identity: str,
        concurrency: int,
        metrics: Metrics,
    ) -> None:
        self._client = client
        self._term = term
        self._apis = apis
        self._items = Items(client)
        self._events = EventRecorder(client, REPORTER, identity)
        self._metrics = metrics
        self._writes = Writes[WrapperKey, Action]()
        self._workers = Workers(self._writes, self._carry_out, feed, term, concurrency)
        metrics.waiting.set_function(partial(len, self._writes))
        self.run = self._workers.run
        self.close = self._workers.close

    def submit(self, actions: Iterable[Action]) -> None:
        """Queue the actions, and start as many as may run."""
        now = time.monotonic()
        for action in actions:
            match action:
                case TellUser() | WriteStatus(informs=True):
                    self._writes.inform(action, now)
                case _:
                    self._writes.add(action.key, action, now)
        self._workers.start()

    async def _carry_out(self, action: Action) -> list[Event]:
        if isinstance(action, TellUser):
            await self._tell(action)
            return []
        return [Ended(action.key, action.ticket, await self._do(action))]

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
            await self._events.write(_object_event(action))
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


def _object_event(told: TellUser) -> ObjectEvent:
    meta = told.wrapper.metadata
    return ObjectEvent(
        namespace=meta.namespace,
        api_version=told.wrapper.api_version,
        kind=names.APP_WRAPPER_KIND,
        name=meta.name,
        uid=meta.uid,
        reason=told.reason,
        message=told.message,
        warning=told.warning,
    )


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

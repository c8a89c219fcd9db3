"""Keeps the connection to one member: its kubeconfig, its watches, its writes.

It has tasks and time limits of its own, so that a member that hangs delays no other.
"""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import msgspec
import structlog

from dispatcher.messages import Event, MemberDown, MemberUp
from dispatcher.metrics import Metrics
from dispatcher.reading import (
    MANAGER,
    Answer,
    Copy,
    OfferObject,
    QueueRoom,
    RayObject,
    Warned,
    WarningObject,
    answer_of,
    copy_of,
    room_of,
    warned_of,
)
from dispatcher.settings import Settings
from dispatcher.shell.access import access_of
from dispatcher.shell.feeding import sink
from dispatcher.shell.kubeconfig import RefusedKubeconfig, target_of
from dispatcher.shell.writing import MemberWriter
from kube.api.backoff import Backoff, pause
from kube.api.client import Client
from kube.api.errors import Garbled, KubeError, NotFound, Timeout
from kube.api.kinds import Kind, Kinds
from kube.api.leader_election import Term
from kube.api.resources import EVENTS, GANG_OFFERS, GANG_QUEUES, NAMESPACES, SECRETS
from kube.api.watch.pace import Selection
from kube.api.watch.reflector import Reflector
from kube.gang.sent import RAY_RESOURCES, RESOURCES
from kube.objects import names
from kube.objects.base import Labels, ObjectMeta, OrNull, Part, Slim
from kube.objects.clusters.gang_offer import OFFER_KIND
from kube.objects.clusters.member_cluster import MemberCluster
from kube.objects.queues.queue import GangQueue
from runtime.controller.workers import Feed

log = structlog.get_logger(__name__)

SYNC_SECONDS = 30.0
"""For the first lists of a member."""

_AGAIN = Backoff(initial=1.0, maximum=30.0, factor=2.0, jitter=0.5)
_NEEDED = (
    Kind(names.API_VERSION, OFFER_KIND),
    *(Kind(names.RAY_API_VERSION, kind) for kind in RAY_RESOURCES),
)


class RefusedMember(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The cluster is none that gangs may be sent to; `reason` is a word for that."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a member said of itself when it was connected to."""

    uid: str
    version: str


class Host(Protocol):
    """What a connection asks of whoever keeps all of them."""

    def admit(self, member: str, uid: str) -> None:
        """Raise RefusedMember where another cluster is meant by that uid."""

    def connected(self, member: str, greeting: Greeting, writer: MemberWriter) -> None:
        """Take a member that is up."""

    def lost(self, member: str, reason: str, message: str) -> None:
        """Take a member that is not."""


class _Secret(Part, frozen=True):
    data: OrNull[Labels] = msgspec.field(default_factory=dict)


class _Named(Slim, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class _Version(Slim, frozen=True):
    git_version: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all connections of one term share."""

    settings: Settings
    client: Client
    """Of the manager."""
    term: Term
    manager: str
    feed: Feed[Event]
    metrics: Metrics
    host: Host


class Connection:
    """The connection to one member, for one term."""

    def __init__(self, cluster: MemberCluster, around: Surroundings) -> None:
        self._cluster, self._around = cluster, around
        self._name = cluster.metadata.name

    async def run(self) -> None:
        """Connect, and again for as long as that is lost, until cancelled."""
        failures = 0
        while True:
            began = asyncio.get_running_loop().time()
            reason, message = await self._until_lost()
            lasted = asyncio.get_running_loop().time() - began
            failures = 1 if lasted > _AGAIN.maximum else failures + 1
            log.info("member lost", cluster=self._name, reason=reason, message=message)
            self._around.host.lost(self._name, reason, message)
            self._around.feed([MemberDown(self._name, message)])
            await pause(_AGAIN, failures)

    async def _until_lost(self) -> tuple[str, str]:
        """Serve one connection; returns what ended it, as reason and message."""
        try:
            await self._serve()
        except RefusedKubeconfig as error:
            return "KubeconfigRefused", f"kubeconfig: {error}"
        except RefusedMember as error:
            return error.reason, str(error)
        except KubeError as error:
            return "Unreachable", str(error)
        raise AssertionError("a connection ends by an error alone")

    async def _serve(self) -> None:
        around, settings = self._around, self._around.settings
        kubeconfig = await self._kubeconfig()
        with access_of(target_of(kubeconfig)) as access:
            client = Client(access, user_agent="muster-dispatcher", timeout=settings.member_timeout)
            async with client:
                greeting = await self._greeted(client)
                watches = list(self._watches(client))
                writer = MemberWriter(
                    self._name,
                    (around.client, client),
                    around.term,
                    around.feed,
                    settings.member_concurrency,
                    around.metrics,
                    settings.member_namespace,
                )
                work = (*(each.run for each in watches), writer.run)
                async with _ended_with(writer, work) as tasks:
                    await _synced(watches)
                    around.host.connected(self._name, greeting, writer)
                    around.feed([MemberUp(self._name)])
                    await _first(tasks, self._probe(client, greeting.uid, kubeconfig))

    # --- who it is ----------------------------------------------------------------------------

    async def _kubeconfig(self) -> bytes:
        """Read the kubeconfig on the manager."""
        named, settings = self._cluster.spec.kubeconfig_secret, self._around.settings
        path = SECRETS.path(settings.namespace, named.name)
        found = await self._around.client.get(path, as_=_Secret)
        written = found.data.get(named.key)
        if written is None:
            said = f"Secret {named.name} of namespace {settings.namespace} has no key {named.key}"
            raise RefusedMember("KubeconfigMissing", said)
        return base64.b64decode(written)

    async def _greeted(self, client: Client) -> Greeting:
        """Ask a member who it is, and whether it can take gangs."""
        uid = await _uid(client)
        self._around.host.admit(self._name, uid)
        version = await client.get("/version", as_=_Version)
        kinds = Kinds(client)
        for kind in _NEEDED:
            if await kinds.find(kind) is None:
                raise RefusedMember("Incompatible", f"it does not serve {kind}")
        for path in self._paths():
            with contextlib.suppress(NotFound):  # AppWrappers need not be served
                await client.request("GET", path, params={"limit": "1"})
        return Greeting(uid, version.git_version)

    def _paths(self) -> Iterator[str]:
        """Yield what it has to be allowed to list there."""
        yield GANG_QUEUES.path()
        for namespace in self._cluster.spec.namespaces:
            for resource in (GANG_OFFERS, EVENTS, *RESOURCES.values()):
                yield resource.path(namespace)

    async def _probe(self, client: Client, uid: str, kubeconfig: bytes) -> None:
        """Ask again and again whether it is still there, and the same; ends by raising."""
        while True:
            await asyncio.sleep(self._around.settings.probe_seconds)
            if await _uid(client) != uid:
                raise RefusedMember("AnotherCluster", "another cluster answers at its address")
            try:
                now = await self._kubeconfig()
            except KubeError:
                continue  # the manager does not answer, which is no fault of the member
            if now != kubeconfig:
                raise RefusedMember("KubeconfigChanged", "it is connected to with the new one")

    # --- what it has --------------------------------------------------------------------------

    def _watches(self, client: Client) -> Iterable[Reflector[Any]]:
        """Watch its queues, and what is ours in the namespaces that gangs may be sent from."""
        fed = sink(self._around.feed, self._name)
        rooms: Reflector[QueueRoom] = Reflector(
            client, GANG_QUEUES, GangQueue, fed, project=room_of
        )
        yield rooms
        for namespace in self._cluster.spec.namespaces:
            ours = f"{MANAGER}={self._around.manager}"
            selection = Selection(namespace=namespace, label_selector=ours)
            offers: Reflector[Answer] = Reflector(
                client, GANG_OFFERS, OfferObject, fed, project=answer_of, selection=selection
            )
            yield offers
            warnings: Reflector[Warned] = Reflector(
                client,
                EVENTS,
                WarningObject,
                fed,
                project=warned_of,
                selection=Selection(namespace=namespace, field_selector="type=Warning"),
            )
            yield warnings
            for kind, resource in RESOURCES.items():
                project = partial(copy_of, kind=kind)
                lenient = replace(selection, may_be_absent=kind not in RAY_RESOURCES)
                copies: Reflector[Copy] = Reflector(
                    client, resource, RayObject, fed, project=project, selection=lenient
                )
                yield copies


async def _uid(client: Client) -> str:
    found = await client.get(NAMESPACES.path(name=names.KUBE_SYSTEM), as_=_Named)
    if not found.metadata.uid:
        raise Garbled(f"namespace {names.KUBE_SYSTEM} has no uid")
    return found.metadata.uid


async def manager_uid(client: Client) -> str:
    """Return what names the manager on members: the uid of its kube-system."""
    return await _uid(client)


async def _synced(watches: Iterable[Reflector[Any]]) -> None:
    try:
        async with asyncio.timeout(SYNC_SECONDS):
            for each in watches:
                await each.wait_synced()
    except TimeoutError as error:
        raise Timeout(f"no whole list within {SYNC_SECONDS:.0f} s") from error


@contextlib.asynccontextmanager
async def _ended_with(
    writer: MemberWriter, work: Iterable[Callable[[], Awaitable[None]]]
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Do all of this until the end, and let no write outlive it."""
    tasks = [asyncio.ensure_future(_awaited(each)) for each in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await writer.close()


async def _awaited(work: Callable[[], Awaitable[None]]) -> None:
    await work()


async def _first(tasks: list[asyncio.Task[None]], probe: Coroutine[Any, Any, None]) -> None:
    """Wait for the first that ends, and raise what ended it."""
    probing = asyncio.create_task(probe)
    try:
        done, _ = await asyncio.wait([*tasks, probing], return_when=asyncio.FIRST_COMPLETED)
    finally:
        probing.cancel()
    for task in done:
        task.result()

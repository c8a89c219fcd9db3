"""Reads lists for the commands, and words why a list could not be read.

Importing the client takes longer than all else that `muster` does: commands import this module
when they run.
"""

import re
from collections.abc import AsyncIterator, Mapping, MutableSequence, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, TypeVar

import msgspec

from cli.endings import (
    LOG_IN_AGAIN,
    NOT_REACHED,
    Absent,
    CannotRead,
    Ending,
    NotAllowed,
    NotServed,
)
from cli.read.dry_created import Answer, DryCreated, refused_with
from cli.read.target import Target
from cli.stderr_log import log_to_stderr
from kube.api.access import Access, is_caller_allowed
from kube.api.bodies import decode, decoded, encode
from kube.api.client import Client, selectors
from kube.api.credentials import load_access
from kube.api.errors import (
    ApiError,
    Forbidden,
    Garbled,
    Gone,
    KubeError,
    NotFound,
    Timeout,
    Unauthorized,
    Unreachable,
)
from kube.api.kinds import Kind, Kinds, Served
from kube.api.kubeconfig_entries import context_namespace
from kube.api.resources import PODS, Resource

T = TypeVar("T")

PAGE = 2500
"""Objects in one page: fewer round trips than the client's own number, for one reader alone."""

_DRY_RUN = {"dryRun": "All", "fieldValidation": "Strict"}
_JSON = {"Content-Type": "application/json", "Accept": "application/json"}
_LOGS = Resource(group="", version="v1", plural="pods/log")
_TRIES = 3  # of a list that takes longer than the API server keeps its place


class Reader(Protocol):
    """What a command reads the cluster through; raises only `CannotRead`."""

    @property
    def namespace(self) -> str:
        """The namespace that counts where the command line names none."""

    @property
    def faults(self) -> Sequence[str]:
        """Objects that were left out of lists because they cannot be decoded, and why."""

    async def list(
        self,
        resource: Resource,
        as_: type[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[T, ...]:
        """Return all objects of a kind, of one namespace or, where it is empty, of all."""

    async def get(
        self, resource: Resource, as_: type[T], name: str, namespace: str = ""
    ) -> T | None:
        """Return one object; None where there is none of that name."""

    async def served(self, kind: Kind) -> Served | None:
        """Return the resource of a kind; None where the API server serves no such kind."""

    async def version(self) -> str:
        """Return the version of Kubernetes, such as 1.37."""

    async def may(self, access: Access) -> bool:
        """Ask whether the caller has a right."""

    def log(
        self, namespace: str, pod: str, params: Mapping[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open the log of a container; yields its pieces."""

    async def would_create(
        self, resource: Resource, namespace: str, manifest: Mapping[str, object]
    ) -> DryCreated:
        """Ask by a dry run what would become of an object; nothing is created."""

    async def schema(self, resource: Resource) -> Mapping[str, Any]:
        """Return the document of OpenAPI that has the schema of a kind."""


class _Version(msgspec.Struct):
    major: str = ""
    minor: str = ""


class ApiReader:
    """Reads through the API server; one object that cannot be decoded takes no other with it."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._kinds = Kinds(client)
        self._faults: dict[str, list[str]] = {}

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig's context, or of the account of the pod."""
        return self._namespace

    @property
    def faults(self) -> Sequence[str]:
        """What was left out of lists, of each list when it was read last."""
        return [each for faults in self._faults.values() for each in faults]

    async def list(
        self,
        resource: Resource,
        as_: type[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[T, ...]:
        """Return all objects of a kind; raises CannotRead with the kind and the place in it."""
        path = resource.path(namespace or None)
        asked = selectors(label_selector, field_selector)
        for left in reversed(range(_TRIES)):
            faults = self._faults[f"{path}?{asked}"] = []
            try:
                return tuple([each async for each in self._each(path, as_, asked, faults)])
            except Gone as error:
                if not left:
                    raise cannot_read(error, resource, namespace) from error
            except KubeError as error:
                raise cannot_read(error, resource, namespace) from error
        raise AssertionError("the last try returns or raises")

    async def _each(
        self, path: str, as_: type[T], asked: dict[str, str], faults: MutableSequence[str]
    ) -> AsyncIterator[T]:
        """Yield the objects of all pages."""
        pages = self._client.list(
            path,
            label_selector=asked.get("labelSelector", ""),
            field_selector=asked.get("fieldSelector", ""),
            limit=PAGE,
        )
        async for page in pages:
            for each in decoded(page, as_, faults):
                yield each

    async def get(
        self, resource: Resource, as_: type[T], name: str, namespace: str = ""
    ) -> T | None:
        """Return one object, None where there is none; raises CannotRead."""
        try:
            return await self._client.get(resource.path(namespace or None, name), as_=as_)
        except NotFound as error:
            if error.reason:  # one without a reason is of the path, which is not served
                return None
            raise cannot_read(error, resource, namespace) from error
        except KubeError as error:
            raise cannot_read(error, resource, namespace) from error

    async def served(self, kind: Kind) -> Served | None:
        """Return the resource of a kind, None where nothing serves it; raises CannotRead."""
        try:
            return await self._kinds.find(kind)
        except KubeError as error:
            said = one_line(str(error))
            raise CannotRead(f"the kinds that are served cannot be read: {said}") from error

    async def version(self) -> str:
        """Return the version of Kubernetes, such as 1.37; raises CannotRead."""
        try:
            found = await self._client.get("/version", as_=_Version)
        except KubeError as error:
            said = one_line(str(error))
            raise CannotRead(f"the version of Kubernetes cannot be read: {said}") from error
        return f"{found.major}.{found.minor.rstrip('+')}"

    async def may(self, access: Access) -> bool:
        """Ask whether the caller has a right; raises CannotRead."""
        try:
            return await is_caller_allowed(self._client, access)
        except KubeError as error:
            said = one_line(str(error))
            raise CannotRead(f"the API server does not say who may {access}: {said}") from error

    @asynccontextmanager
    async def log(
        self, namespace: str, pod: str, params: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open the log of a container; yields its pieces. Raises CannotRead."""
        path = PODS.path(namespace, pod, "log")
        try:
            async with self._client.stream(path, params) as pieces:
                yield pieces
        except KubeError as error:
            raise _no_log(error, namespace, pod) from error

    async def would_create(
        self, resource: Resource, namespace: str, manifest: Mapping[str, object]
    ) -> DryCreated:
        """Ask by a dry run what would become of an object; no error is raised."""
        path, body = resource.path(namespace), encode(manifest)
        try:
            found = await self._client.request(
                "POST", path, params=_DRY_RUN, body=body, headers=_JSON
            )
        except KubeError as error:
            return refused_with(error)
        return DryCreated(Answer.TAKEN, admitted=found)

    async def schema(self, resource: Resource) -> Mapping[str, Any]:
        """Return the document of OpenAPI that has the schema of a kind; raises CannotRead."""
        root = f"apis/{resource.group}" if resource.group else "api"
        try:
            found = await self._client.request("GET", f"/openapi/v3/{root}/{resource.version}")
            return decode(found, dict[str, Any])
        except KubeError as error:
            raise CannotRead(f"its schema cannot be read: {one_line(str(error))}") from error


@asynccontextmanager
async def open_client(target: Target) -> AsyncIterator[tuple[Client, str]]:
    """Open the cluster that the command line names, and say its namespace; raises CannotRead."""
    log_to_stderr()
    try:
        access = await load_access(target.kubeconfig, target.context, setting="--kubeconfig")
        namespace = context_namespace(target.kubeconfig, target.context)
    except KubeError as error:
        raise CannotRead(one_line(str(error))) from error
    async with Client(access, user_agent="muster", timeout=target.timeout) as client:
        yield client, namespace


@asynccontextmanager
async def open_reader(target: Target) -> AsyncIterator[Reader]:
    """Open the cluster for reading; raises CannotRead."""
    async with open_client(target) as (client, namespace):
        yield ApiReader(client, namespace)


def _no_log(error: KubeError, namespace: str, pod: str) -> Ending:
    match error:
        case NotFound():
            return Absent(f"there is no pod {pod} in namespace {namespace} any more")
        case ApiError(status=400):  # its container has not begun, for example
            return Absent(f"pod {namespace}/{pod}: {one_line(error.message)}")
        case _:
            return cannot_read(error, _LOGS, namespace)


def one_line(text: str) -> str:
    """Put a text on one line, however it came."""
    return " ".join(text.split())


def called(resource: Resource) -> str:
    """Name a kind as kubectl does."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def cannot_read(error: KubeError, resource: Resource, namespace: str) -> CannotRead:
    """Say what could not be read and why, and what can be done about it."""
    kind = called(resource)
    where = f" in namespace {namespace}" if namespace else ""
    said = one_line(str(error))
    listed = f"{kind}{where or ' in all namespaces'}"
    said_of: Mapping[type[KubeError], tuple[type[CannotRead], str]] = {
        Forbidden: (NotAllowed, f"not allowed to read {listed}: {_lacked(error) or said}"),
        NotFound: (NotServed, _not_served(resource)),
        Unauthorized: (
            CannotRead,
            f"{LOG_IN_AGAIN}: {said}",
        ),
        Timeout: (CannotRead, f"no answer for {kind}{where} within --request-timeout: {said}"),
        Unreachable: (CannotRead, f"{NOT_REACHED}: {said}"),
        Garbled: (CannotRead, f"{kind}{where} cannot be decoded: {said[:300]}"),
    }
    default = (CannotRead, f"{kind}{where} cannot be read: {said}")
    ending, message = said_of.get(type(error), default)
    return ending(message)


_NO_RIGHT = re.compile(
    r'User "(?P<user>.*?)" cannot (?P<verb>\w+) resource "[^"]*"( in API group "[^"]*")?'
    r'( (at the cluster scope|in the namespace "[^"]*"))?(?P<more>.*)'
)


def _lacked(error: KubeError) -> str:
    """Say who lacks which right, where that is why; kind and place are said before it.

    What an authorizer adds, as those of providers do, is kept.
    """
    found = _NO_RIGHT.search(one_line(str(error)))
    return f"{found['user']} may not {found['verb']} them{found['more']}" if found else ""


def _not_served(resource: Resource) -> str:
    kind = f"{called(resource)} in version {resource.version}"
    if resource.group.endswith("muster.dev"):
        return (
            f"the cluster does not serve {kind}: Muster is not installed there, or its definitions "
            "are of another release (kubectl apply -k manifests/crds)"
        )
    return f"the cluster does not serve {kind}"

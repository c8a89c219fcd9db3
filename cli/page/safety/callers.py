"""Identifies who sends a request, and makes a client with exactly that person's rights.

On a laptop the person is whoever started the page, with a kubeconfig. In the cluster it is whoever
sent the request, by the token in it: the page has no rights of its own, and keeps no token.
"""

import re
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from cli.page.safety.answers import Refused
from cli.read.reader import ApiReader
from cli.write.writer import Writer
from kube.api.client import Client
from kube.api.credentials import token_access
from kube.api.errors import NotFound
from kube.api.resources import Resource
from kube.objects.user import User

LONGEST_TOKEN: Final = 1 << 14
_BEARER: Final = re.compile(r"Bearer ([A-Za-z0-9\-._~+/]+=*)", re.IGNORECASE)
_REVIEWS: Final = Resource(
    group="authentication.k8s.io", version="v1", plural="selfsubjectreviews", namespaced=False
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Reads and writes as one person may; made for one request, and shared with no other."""

    client: Client
    namespace: str = ""
    """The one of the kubeconfig's context; empty in the cluster."""

    @property
    def reader(self) -> ApiReader:
        """What reads of the command read through."""
        return ApiReader(self.client, self.namespace)

    @property
    def writer(self) -> Writer:
        """What verbs of the command write through."""
        return Writer(self.client, self.namespace)

    async def who(self) -> User:
        """Return who this is, as the API server says; raises KubeError.

        Before Kubernetes 1.28 it does not say: the user has no name then.
        """
        head = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        try:
            answer = await self.client.create(_REVIEWS.path(), head, as_=_Review)
        except NotFound:
            return User()
        return answer.status.user_info


class _Status(msgspec.Struct, rename="camel"):
    user_info: User


class _Review(msgspec.Struct):
    status: _Status


CALLER: Final = web.RequestKey("caller", Caller)
"""Where handlers find who asks."""


class Callers(Protocol):
    """Says who makes requests."""

    @property
    def needs(self) -> str:
        """What a person has to give before anything is answered; empty for nothing."""

    def of(self, request: web.Request) -> AbstractAsyncContextManager[Caller]:
        """Open the cluster for whoever sent a request; raises Refused."""


class OnLaptop:
    """Whoever started the page; all requests have that person's rights."""

    needs: Final = ""

    def __init__(self, client: Client, namespace: str) -> None:
        self._caller = Caller(client, namespace)

    @asynccontextmanager
    async def of(self, _: web.Request) -> AsyncIterator[Caller]:
        """Return the same for each request: headers say nothing of who asks."""
        yield self._caller


class ByToken:
    """Whoever the token of a request is of; the API server says who that is."""

    needs: Final = "token"

    def __init__(self, server: str, ca: str | None, timeout: float) -> None:
        self._server = server
        self._ca = ca
        self._timeout = timeout

    @asynccontextmanager
    async def of(self, request: web.Request) -> AsyncIterator[Caller]:
        """Open a connection of its own, which sends this token and no other header of the request.

        A request without a token is answered here, and the API server hears nothing of it.
        """
        access = token_access(self._server, self._ca, _token(request))
        async with Client(access, user_agent="muster-dashboard", timeout=self._timeout) as client:
            yield Caller(client)


def _token(request: web.Request) -> str:
    found = request.headers.getall(hdrs.AUTHORIZATION, [])
    said = _BEARER.fullmatch(found[0]) if len(found) == 1 else None
    if said is None or len(said[1]) > LONGEST_TOKEN:
        raise Refused(401, "send a token: Authorization: Bearer TOKEN", needs="token")
    return said[1]


def with_caller(callers: Callers, public: Collection[str]) -> Middleware:
    """Return the middleware that finds out who asks, for all paths but those of files."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path in public:
            return await handler(request)
        async with callers.of(request) as caller:
            request[CALLER] = caller
            return await handler(request)

    return middleware

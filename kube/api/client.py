"""Makes one call to the API server: its answer in bytes, or a KubeError, before the deadline.

Nothing is retried but a 401 (once, with renewed credentials), because only the caller knows
whether a second try is right. Two limits of that promise: aiohttp sends a GET or a DELETE again
when an idle connection turns out to be dead, so a DELETE should carry a uid; and a deadline does
not call back a request, so after a Timeout the write may still happen.

Invariant: every call ends within its timeout, and raises only KubeErrors.
"""

# A timeout is what each call promises, so it is a parameter and no scope of the caller.
# ruff: noqa: ASYNC109

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self, overload
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from kube.api.bodies import T, decode, decode_as, encode, sent_at
from kube.api.connection import guarded_socket, only_kube_errors
from kube.api.credentials import ClusterAccess, Credentials
from kube.api.errors import (
    Unauthorized,
    error_from_response,
)
from kube.api.streams import Lines, lines_of, pieces_of

PAGE = 500
"""Objects in one page of a list: client-go's number, 4 MB of pods."""

_JSON = "application/json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

_CONTENT_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    # JSON is YAML, and this is the one name for it that every server-side apply accepts.
    "apply": "application/apply-patch+yaml",
}

# An event of several megabytes comes in few pieces, and a fast list seldom waits for us.
_READ_BUFFER = 1 << 20

# Go's API server closes idle connections after 90 s; a PATCH must not meet one that closes.
_KEEP_ALIVE = 60.0


class _PageMetadata(msgspec.Struct):
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _PageMetadata = msgspec.field(default_factory=_PageMetadata)


class Client:
    """Calls over one keep-alive session; use it as `async with Client(...) as client`."""

    def __init__(
        self,
        access: ClusterAccess,
        *,
        user_agent: str = "muster",
        timeout: float = 10.0,
        connections: int = 100,
    ) -> None:
        self._access = access
        self._user_agent = user_agent
        self._timeout = timeout
        self._connections = connections
        self._open: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._open = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._connections,
                keepalive_timeout=_KEEP_ALIVE,
                socket_factory=guarded_socket,
            ),
            # Compression costs both ends more than the bytes do inside a cluster.
            headers={"User-Agent": self._user_agent, "Accept-Encoding": "identity"},
            timeout=aiohttp.ClientTimeout(),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        await self._access.close()
        self._open = None

    @property
    def _session(self) -> aiohttp.ClientSession:
        assert self._open is not None, "use the client inside `async with`"
        return self._open

    @overload
    async def get(
        self, path: str, *, metadata_only: bool = ..., timeout: float | None = ...
    ) -> bytes: ...
    @overload
    async def get(
        self, path: str, *, as_: type[T], metadata_only: bool = ..., timeout: float | None = ...
    ) -> T: ...
    async def get(
        self,
        path: str,
        *,
        as_: type[Any] | None = None,
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Read one object, as the newest that the API server has."""
        headers = {"Accept": _METADATA if metadata_only else _JSON}
        return decode_as(as_, await self.request("GET", path, headers=headers, timeout=timeout))

    async def list(
        self,
        path: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE,
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[bytes]:
        """Yield the pages of one consistent list; the timeout is each page's.

        Gone between two pages means that the list took too long: begin it anew.
        """
        params = {"limit": str(limit)} | selectors(label_selector, field_selector)
        headers = {"Accept": _METADATA_LIST if metadata_only else _JSON}
        while True:
            page = await self.request("GET", path, params=params, headers=headers, timeout=timeout)
            yield page
            token = decode(page, _Page).metadata.continue_
            if not token:
                return
            params["continue"] = token

    @overload
    async def create(self, path: str, obj: object, *, timeout: float | None = ...) -> bytes: ...
    @overload
    async def create(
        self, path: str, obj: object, *, as_: type[T], timeout: float | None = ...
    ) -> T: ...
    async def create(
        self,
        path: str,
        obj: object,
        *,
        as_: type[Any] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """POST to a collection; Conflict when the name is taken."""
        body = encode(obj)
        headers = {"Content-Type": _JSON, "Accept": _JSON}
        answer = await self.request("POST", path, body=body, headers=headers, timeout=timeout)
        return decode_as(as_, answer)

    @overload
    async def json_patch(
        self, path: str, operations: object, *, timeout: float | None = ...
    ) -> bytes: ...
    @overload
    async def json_patch(
        self, path: str, operations: object, *, as_: type[T], timeout: float | None = ...
    ) -> T: ...
    async def json_patch(
        self,
        path: str,
        operations: object,
        *,
        as_: type[Any] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Apply JSON patch operations; a failed `test` is Invalid, as a refused object is."""
        return decode_as(as_, await self._patch("json", path, operations, {}, timeout))

    @overload
    async def merge_patch(
        self, path: str, changes: object, *, timeout: float | None = ...
    ) -> bytes: ...
    @overload
    async def merge_patch(
        self, path: str, changes: object, *, as_: type[T], timeout: float | None = ...
    ) -> T: ...
    async def merge_patch(
        self,
        path: str,
        changes: object,
        *,
        as_: type[Any] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Merge changes; with `metadata.resourceVersion` in them Conflict when that is stale."""
        return decode_as(as_, await self._patch("merge", path, changes, {}, timeout))

    @overload
    async def apply(
        self,
        path: str,
        obj: object,
        *,
        field_manager: str,
        force: bool = ...,
        timeout: float | None = ...,
    ) -> bytes: ...
    @overload
    async def apply(
        self,
        path: str,
        obj: object,
        *,
        as_: type[T],
        field_manager: str,
        force: bool = ...,
        timeout: float | None = ...,
    ) -> T: ...
    async def apply(
        self,
        path: str,
        obj: object,
        *,
        as_: type[Any] | None = None,
        field_manager: str,
        force: bool = False,
        timeout: float | None = None,
    ) -> Any:
        """Server-side apply; Conflict when another manager owns a field and `force` is not set."""
        params = {"fieldManager": field_manager, "force": "true" if force else "false"}
        return decode_as(as_, await self._patch("apply", path, obj, params, timeout))

    async def _patch(
        self, form: str, path: str, body: object, params: Mapping[str, str], timeout: float | None
    ) -> bytes:
        headers = {"Content-Type": _CONTENT_TYPES[form], "Accept": _JSON}
        return await self.request(
            "PATCH", path, params=params, body=encode(body), headers=headers, timeout=timeout
        )

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation: str | None = None,
        timeout: float | None = None,
    ) -> bytes:
        """Delete one object; Conflict when it is not the one that `uid` names any more."""
        preconditions = _present(uid=uid, resourceVersion=resource_version)
        options = _present(
            preconditions=preconditions or None,
            gracePeriodSeconds=grace_period_seconds,
            propagationPolicy=propagation,
        )
        body = encode({"kind": "DeleteOptions", "apiVersion": "v1", **options})
        headers = {"Content-Type": _JSON, "Accept": _JSON}
        return await self.request("DELETE", path, body=body, headers=headers, timeout=timeout)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> bytes:
        """Send one request and return the body of its 2xx answer."""
        url = self._url(path, params or {})
        with only_kube_errors(f"{method} {path}"):
            async with asyncio.timeout(timeout or self._timeout):
                async with self._answer(method, url, body, headers or {}) as answer:
                    return await answer.read()

    async def server_time(self) -> float:
        """Return the API server's time of day in seconds since 1970: behind it, never ahead."""
        url = self._url("/version", {})
        async with self._opened("GET /version", url, {}, None, None) as answer:
            return sent_at(answer.headers)

    @contextlib.asynccontextmanager
    async def stream_watch(
        self,
        path: str,
        params: Mapping[str, str],
        *,
        silence: float = 150.0,
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> AsyncIterator[AsyncIterator[Lines]]:
        """Open a watch; yields the events' lines, those that came together in one list.

        `timeout` bounds the opening, `silence` the wait for the next byte (bookmarks come about
        once a minute); both end in Timeout. The iterator ends when the server ends the watch.
        """
        url = self._url(path, {"watch": "true", **params})
        headers = {"Accept": _METADATA if metadata_only else _JSON}
        async with self._opened(f"watch {path}", url, headers, silence, timeout) as answer:
            yield lines_of(answer, path)

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], *, timeout: float | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open an answer of any size; yields its pieces as they come, and keeps none of them.

        `timeout` bounds the opening alone: who follows a log may wait for ever for its next line.
        """
        headers = {"Accept": "*/*"}
        url = self._url(path, params)
        async with self._opened(f"GET {path}", url, headers, None, timeout) as answer:
            yield pieces_of(answer, path)

    @contextlib.asynccontextmanager
    async def _opened(
        self,
        what: str,
        url: URL,
        headers: Mapping[str, str],
        silence: float | None,
        timeout: float | None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        async with contextlib.AsyncExitStack() as stack:
            with only_kube_errors(what):
                async with asyncio.timeout(timeout or self._timeout):
                    opening = self._answer("GET", url, None, headers, silence)
                    answer = await stack.enter_async_context(opening)
            yield answer

    @contextlib.asynccontextmanager
    async def _answer(
        self,
        method: str,
        url: URL,
        body: bytes | None,
        headers: Mapping[str, str],
        silence: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        credentials = await self._access.current()
        async with contextlib.AsyncExitStack() as stack:
            for last_try in (False, True):
                sending = self._send(method, url, body, headers, credentials, silence)
                answer = await stack.enter_async_context(sending)
                if answer.status < 300:
                    yield answer
                    return
                error = error_from_response(answer.status, await answer.read(), answer.headers)
                refused = credentials
                if isinstance(error, Unauthorized) and not last_try:
                    credentials = await self._access.after_refusal(refused)
                if credentials is refused:
                    raise error

    def _send(
        self,
        method: str,
        url: URL,
        body: bytes | None,
        headers: Mapping[str, str],
        credentials: Credentials,
        silence: float | None,
    ) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._session.request(
            method,
            url,
            data=body,
            headers=[*headers.items(), *credentials.headers],
            ssl=credentials.ssl_context or True,
            server_hostname=credentials.server_name,
            proxy=credentials.proxy,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(sock_read=silence),
        )

    def _url(self, path: str, params: Mapping[str, str]) -> URL:
        query = f"?{urlencode(params)}" if params else ""
        return URL(f"{self._access.server}{path}{query}", encoded=True)


def selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    """Return the query parameters of those selectors that select anything."""
    return _present(labelSelector=label_selector or None, fieldSelector=field_selector or None)


def _present(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}

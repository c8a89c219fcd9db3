"""What a replica asks of the API server in memory, and how that may end."""

from collections import deque
from collections.abc import AsyncIterator, Callable
from enum import Enum, auto
from typing import Any

import msgspec

from kube.api.errors import (
    ApiError,
    ServerError,
    Timeout,
    TooManyRequests,
    Unreachable,
)
from tests.coordinator.api import Api, Json, parsed


class Outcome(Enum):
    """How a write ends: at the server, and as the coordinator hears it."""

    DONE = auto()
    LOST = auto()  # done, but its answer never comes
    HELD = auto()  # nobody knows where it is; it will arrive when somebody lets it go
    UNSENT = auto()  # no connection
    THROTTLED = auto()
    BROKEN = auto()  # a 500 that did nothing


def _fault(outcome: Outcome) -> Exception:
    """What the coordinator hears instead of an answer."""
    match outcome:
        case Outcome.UNSENT:
            return Unreachable("connection refused", sent=False)
        case Outcome.THROTTLED:
            return TooManyRequests(429, "TooManyRequests", "later")
        case Outcome.BROKEN:
            return ServerError(500, "InternalError", "etcdserver: request timed out")
        case _:
            return Timeout("no answer within 10 s")


class Client:
    """The client of one replica: `outcome` is that of its next write; reads may fail as well."""

    def __init__(self, api: Api) -> None:
        self.outcome = Outcome.DONE
        self.reads_fail = False
        self.held: deque[Callable[[], Json | None]] = deque()
        self._api = api

    async def get(self, path: str, *, as_: type[Any]) -> Any:
        if self.reads_fail:
            raise Timeout("no answer within 10 s")
        return msgspec.convert(self._api.get(parsed(path)[0]), as_)

    async def create(self, path: str, obj: Json, *, as_: type[Any] | None = None) -> Any:
        if obj["kind"] == "Eviction":
            self._write(lambda: self._api.evict(*_dry(path), obj))
            return b""
        assert parsed(path)[0].namespace == obj["metadata"].get("namespace", "")
        done = self._write(lambda: self._api.create(obj))
        return msgspec.convert(done, as_) if as_ is not None else b""

    async def json_patch(self, path: str, operations: list[Json], *, as_: type[Any]) -> Any:
        key, subresource = parsed(path)
        done = self._write(lambda: self._api.patch(key, operations, subresource))
        return msgspec.convert(done, as_)

    async def merge_patch(self, path: str, changes: Json, *, as_: type[Any] | None = None) -> Any:
        bare, dry_run = _dry(path)
        key, _ = parsed(bare)
        done = self._write(lambda: self._api.merge(key, changes, dry_run=dry_run))
        return msgspec.json.decode(msgspec.json.encode(done), type=as_) if as_ else b""

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,  # noqa: ARG002 - kubelets here know none
    ) -> bytes:
        key, _ = parsed(path)
        self._write(lambda: self._api.delete(key, uid, resource_version))
        return b""

    def let_go(self) -> ApiError | None:
        """Have the oldest held write arrive; say what the server answers into the void."""
        try:
            self.held.popleft()()
        except ApiError as error:
            return error
        return None

    def _write(self, write: Callable[[], Json | None]) -> Json | None:
        outcome, self.outcome = self.outcome, Outcome.DONE
        if outcome is Outcome.HELD:
            self.held.append(write)
        if outcome in (Outcome.DONE, Outcome.LOST):
            done = write()
        if outcome is not Outcome.DONE:
            raise _fault(outcome)
        return done

    async def list(self, path: str) -> AsyncIterator[bytes]:
        """Of budgets alone: all else is watched."""
        if self.reads_fail:
            raise Timeout("no answer within 10 s")
        yield msgspec.json.encode(self._api.budgets_in(parsed(path)[0].namespace))


def _dry(path: str) -> tuple[str, bool]:
    """The path without its parameters, and whether they ask for a dry run."""
    bare, _, parameters = path.partition("?")
    return bare, parameters == "dryRun=All"

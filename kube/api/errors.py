"""Classifies failed requests to the API server; each says whether the write may have happened.

    KubeError
    ├── ApiError(status, reason, message, retry_after)   the API server answered, and said no
    │   ├── Unauthorized 401    ├── Gone 410
    │   ├── Forbidden 403       ├── Invalid 422
    │   ├── NotFound 404        ├── TooManyRequests 429
    │   ├── Conflict 409        └── ServerError 5xx        outcome unknown
    ├── Unreachable             refused, reset, DNS, TLS   unknown once the request was under way
    ├── Timeout                 the deadline passed        outcome unknown
    ├── Garbled                 an answer that is no answer of this API
    └── NoAccess                the kubeconfig or the in-cluster files are unusable

Invariant: the client raises nothing else, and `outcome_unknown` is False only where the write
certainly did not happen. After True the caller reads the object before it decides anything.
"""

# The tree above is read as a list of answers: "except NotFound" says it all.
# ruff: noqa: N818

import re
from collections.abc import Mapping

import msgspec

from runtime.errors import CannotRunError

NAMESPACE_TERMINATING = "NamespaceTerminating"
"""The cause that a 403 names when something is to be created in a namespace that goes."""

DISRUPTION_BUDGET = "DisruptionBudget"
"""The cause that a 429 names when a budget holds an eviction back."""

_NO_RIGHT = re.compile(r'User ".*" cannot \w+ resource')


class KubeError(CannotRunError):
    """Anything that keeps us from an answer of the API server."""

    @property
    def outcome_unknown(self) -> bool:
        """Whether a write that ended so may have been carried out."""
        return False


class ApiError(KubeError):
    """The API server refused; `message` is its own text, fit to be shown to a user."""

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        retry_after: float | None = None,
        causes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.causes = causes
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class Unauthorized(ApiError):
    """401: the credentials are missing, wrong or expired."""


class Forbidden(ApiError):
    """403: RBAC or an admission plugin says no."""


class NotFound(ApiError):
    """404: no such object, or no such resource at all."""


class Conflict(ApiError):
    """409: the resourceVersion or a precondition is stale, or the name is taken."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token is too old; list again."""


class Invalid(ApiError):
    """422: the object is not valid, or a `test` of a JSON patch failed."""


class TooManyRequests(ApiError):
    """429: priority and fairness, or an eviction that a disruption budget holds back."""


class ServerError(ApiError):
    """5xx: also what a lost answer of etcd looks like, so a write may have happened."""

    @property
    def outcome_unknown(self) -> bool:
        """Always: "etcdserver: request timed out" arrives as a 500."""
        return True


class Unreachable(KubeError):
    """No connection, or one that broke; `sent` says whether the request was under way."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent

    @property
    def outcome_unknown(self) -> bool:
        """A request that never left can't have happened."""
        return self.sent


class Timeout(KubeError):
    """The deadline of the call passed."""

    @property
    def outcome_unknown(self) -> bool:
        """Always: the request may be executed even after this moment."""
        return True


class NotServed(KubeError):
    """The API server serves no such kind, or not yet."""


class Garbled(KubeError):
    """The bytes are not what this API answers: a proxy's page, or a type that doesn't fit."""

    @property
    def outcome_unknown(self) -> bool:
        """Always: the answer could not be read."""
        return True


class NoAccess(KubeError):
    """There is no usable address of the API server, or no usable credential."""


def is_of_what_goes(error: KubeError) -> bool:
    """Say whether a write failed because its object is gone, or its namespace is being deleted.

    Such a write is no error. A 404 without a reason is one: the API itself is not served.
    """
    match error:
        case NotFound(reason=reason):
            return bool(reason)
        case Forbidden(causes=causes):
            return NAMESPACE_TERMINATING in causes
        case _:
            return False


def is_of_role(error: KubeError) -> bool:
    """Say whether the account has no right to a request, which no change of its object helps.

    An admission plugin answers 403 too. The text of an authorizer's answer is the API server's own.
    """
    return isinstance(error, Forbidden) and bool(_NO_RIGHT.search(error.message))


def is_of_budget(error: KubeError) -> bool:
    """Say whether a disruption budget holds an eviction back."""
    return isinstance(error, TooManyRequests) and DISRUPTION_BUDGET in error.causes


class _Cause(msgspec.Struct):
    reason: str | None = None


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: float | None = None
    causes: tuple[_Cause, ...] | None = None


class Status(msgspec.Struct, rename="camel"):
    """The part of a `Status` object that we use; also the object of an ERROR watch event."""

    message: str | None = None
    reason: str | None = None
    code: int | None = None
    details: _Details | None = None


_BY_STATUS: Mapping[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}

# Enough of a proxy's error page to recognise it, short enough for one log line.
_EXCERPT = 300


def error_from_status(status: Status, http_status: int) -> ApiError:
    """Return the error that a Status object describes; its own code wins over HTTP's."""
    code = status.code or http_status
    kind = _BY_STATUS.get(code, ServerError if code >= 500 else ApiError)
    details = status.details or _Details()
    causes = tuple(cause.reason for cause in details.causes or () if cause.reason)
    retry_after = details.retry_after_seconds
    return kind(code, status.reason or "", status.message or "", retry_after, causes)


def error_from_response(status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """Return the error of an answer that is not 2xx, whatever its body is."""
    error = error_from_status(_status_in(body), status)
    header = _seconds(headers.get("Retry-After", ""))
    error.retry_after = header if header is not None else error.retry_after
    return error


def _status_in(body: bytes) -> Status:
    try:
        return msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError:
        return Status(message=body[:_EXCERPT].decode("utf-8", "replace"))


def _seconds(text: str) -> float | None:
    # The other form of Retry-After, a date, is never sent by an API server.
    return float(text) if text.isascii() and text.isdigit() else None

"""Starts a program: settings, log lines, exit code."""

import asyncio
import difflib
import logging
import os
import re
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import structlog
from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings

from runtime.connections import Limits
from runtime.errors import CannotRunError

log = structlog.get_logger(__name__)

NOTHING: Mapping[str, Any] = MappingProxyType({})

_BAD_SETTINGS = 2
_CANNOT_RUN = 1


class ProgramSettings(BaseSettings):
    """What every program can be told, beside its own settings."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least urgent log line that is written."""

    connection_limit: int = Field(default=256, ge=8, le=65_536)
    """How many connections each port may have; a new one closes another one whose request is not
    complete."""

    header_seconds: float = Field(default=10.0, gt=0, le=60)
    """From the accept of a connection (over TLS the end of the handshake), or the first byte of a
    later request, until its headers are complete; also for the caller to read an answer."""

    @property
    def limits(self) -> Limits:
        """What holds for every port of the program."""
        return Limits(connections=self.connection_limit, headers=self.header_seconds)


S = TypeVar("S", bound=ProgramSettings)

_SHARED: tuple[structlog.typing.Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
)


_SHAPES = frozenset(
    ("json_invalid", "tuple_type", "list_type", "dict_type", "model_type", "string_type")
)
"""Errors of pydantic that name types of Python, which say nothing to who writes JSON."""

_IN_THE_SHAPE = 2
"""The setting itself and what is directly in it; what is deeper has a message of its own."""

_OF_A_SERVICE = re.compile(r"(.*_)?(SERVICE_(HOST|PORT)(_.*)?|PORT_\d+_(TCP|UDP|SCTP)(_.*)?)")


class SettingsError(ValueError):
    """One or more settings cannot be used; the text has a line for each of them."""


def run_program(
    kind: type[S],
    prefix: str,
    program: Callable[[S], Coroutine[Any, Any, None]],
    given: Mapping[str, Any] = NOTHING,
) -> int:
    """Run a program until it ends; the exit code is 2 for bad settings and 1 when it cannot run.

    `given` are settings that were given as options.
    """
    try:
        settings = load_settings(kind, prefix, given)
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201  (how to log is a setting, too)
        return _BAD_SETTINGS
    log_json(settings.log_level)
    try:
        asyncio.run(program(settings))
    except (CannotRunError, OSError) as error:
        log.error("cannot run", reason=str(error))
        return _CANNOT_RUN
    return 0


def load_settings(kind: type[S], prefix: str, given: Mapping[str, Any] = NOTHING) -> S:
    """Read the settings from the environment, but for those that are given; all faults together.

    A variable that is no setting is a fault, too: one that is spelled wrong would do nothing.
    """
    known = [prefix + field.upper() for field in kind.model_fields]
    unknown = list(unknown_variables(known, prefix, os.environ))
    try:
        settings = kind(**given)
    except ValidationError as error:
        raise SettingsError("\n".join([*faults_of(error, kind, prefix), *unknown])) from error
    if unknown:
        raise SettingsError("\n".join(unknown))
    return settings


def unknown_variables(
    names: Sequence[str], prefix: str, environment: Mapping[str, str]
) -> Iterator[str]:
    """Give one line for each variable with the prefix that names no setting."""
    for name, value in sorted(environment.items()):
        rest = name.upper().removeprefix(prefix)
        ours = rest != name.upper() and not _is_of_a_service(rest, value)
        if ours and name.upper() not in names:
            near = difflib.get_close_matches(name.upper(), names, n=1)
            also = f"; the nearest is {near[0]}" if near else ""
            yield f"{name}: {value!r}: there is no such setting{also}"


def _is_of_a_service(rest: str, value: str) -> bool:
    """Say whether Kubernetes put it into the pod, for a Service whose name begins as the prefix."""
    return bool(_OF_A_SERVICE.fullmatch(rest)) or (rest.endswith("PORT") and "://" in value)


def faults_of(error: ValidationError, kind: type[ProgramSettings], prefix: str) -> list[str]:
    """Return one line for each variable: a value that may have two types fails once in each."""
    faults: dict[str, tuple[str, list[str]]] = {}
    for detail in error.errors():
        _, allowed = faults.setdefault(prefix + _name(detail["loc"]), (repr(detail["input"]), []))
        allowed.append(_message(detail, kind))
    return [f"{name}: {value}: {'; '.join(said)}" for name, (value, said) in faults.items()]


def _message(detail: ErrorDetails, kind: type[ProgramSettings]) -> str:
    """Say what is allowed where JSON has another shape than its setting describes."""
    field = kind.model_fields.get(str(detail["loc"][0])) if detail["loc"] else None
    described = field.description if field and len(detail["loc"]) <= _IN_THE_SHAPE else None
    if described is None or detail["type"] not in _SHAPES:
        return detail["msg"]
    fault = detail["msg"] if detail["type"] == "json_invalid" else "not valid"
    return f"{fault}; allowed: {described}"


def _name(loc: tuple[int | str, ...]) -> str:
    """Name a variable, and in a list the place of the fault: SCHEDULERS[0].plugins.filter."""
    name = str(loc[0]).upper() if loc else "*"
    if len(loc) < 2 or not isinstance(loc[1], int):
        return name
    return name + "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in loc[1:])


def log_json(level: str) -> None:
    """Write all logs to stderr as JSON, through the standard library's handlers."""
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(_number(level)),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter())
    logging.basicConfig(handlers=[handler], level=_number(level), force=True)


def _formatter() -> logging.Formatter:
    final: list[Any] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.JSONRenderer(),
    ]
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=_SHARED, processors=final)


def _number(level: str) -> int:
    return logging.getLevelNamesMapping()[level.upper()]

"""How does each of Muster's programs read its settings, and how do its log lines look?"""

import logging
import sys
from typing import Any, TypeVar

import structlog
from pydantic import ValidationError
from pydantic_settings import BaseSettings

S = TypeVar("S", bound=BaseSettings)

_SHARED: tuple[structlog.typing.Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
)


class SettingsError(ValueError):
    """One or more settings cannot be used; the text has a line for each of them."""


def load_settings(kind: type[S], prefix: str) -> S:
    """Read the settings from the environment; all faults are reported together."""
    try:
        return kind()
    except ValidationError as error:
        raise SettingsError("\n".join(_faults(error, prefix))) from error


def _faults(error: ValidationError, prefix: str) -> list[str]:
    """Return one line for each variable: a value that may have two types fails once in each."""
    faults: dict[str, tuple[str, list[str]]] = {}
    for detail in error.errors():
        name = str(detail["loc"][0]).upper() if detail["loc"] else "*"
        _, allowed = faults.setdefault(prefix + name, (repr(detail["input"]), []))
        allowed.append(detail["msg"])
    return [f"{name}: {value}: {'; '.join(said)}" for name, (value, said) in faults.items()]


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

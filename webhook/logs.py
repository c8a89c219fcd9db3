"""How does a line of the log look, ours or a library's? One JSON object each."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

_SHARED: tuple[structlog.typing.Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
)


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

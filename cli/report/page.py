"""Selects what the page in the browser shows at one time: some rows of a report, all counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from cli.report.gangs import GangReport
from cli.report.queues import QueueReport
from cli.report.room.nodes import NodeReport, PoolReport
from cli.report.status import StatusReport

T = TypeVar("T")

ROWS = 100
"""Rows of each table: a person reads no more, and looks for the others by name."""


class Rows(msgspec.Struct, frozen=True):
    """The first of the rows that match, and how many do; `items` are reports."""

    items: tuple[object, ...]
    count: int


class PageReport(msgspec.Struct, frozen=True, rename="camel"):
    """One view of the page; `version` counts the readings, `age` is the seconds since the last.

    `fault` says why the cluster could not be read since then; empty where it could.
    """

    version: int
    age: float
    fault: str
    query: str
    gangs: int
    finished: int
    phases: Mapping[str, int]
    reasons: Mapping[str, int]
    waiting: Rows
    placed: Rows
    failed: Rows
    queues: Rows
    nodes: Rows
    pools: tuple[PoolReport, ...]
    nodes_known: bool
    queues_known: bool
    unread: tuple[str, ...]


def page_report(
    found: StatusReport, query: str, version: int, age: float, fault: str
) -> PageReport:
    """Return the rows that have `query` in one of their words, in upper or lower case."""
    text = query.strip().casefold()
    return PageReport(
        version=version,
        age=round(age, 1),
        fault=fault,
        query=query,
        gangs=found.gangs,
        finished=found.finished,
        phases=found.phases,
        reasons=found.reasons,
        waiting=_rows(found.waiting, text, _gang_words),
        placed=_rows(found.placed, text, _gang_words),
        failed=_rows(found.failed, text, _gang_words),
        queues=_rows(found.queues, text, _queue_words),
        nodes=_rows(found.nodes.nodes, text, _node_words),
        pools=found.nodes.pools,
        nodes_known=found.nodes.is_known,
        queues_known=found.queues_known,
        unread=found.unread,
    )


def _rows(found: Sequence[T], text: str, words: Callable[[T], tuple[str, ...]]) -> Rows:
    matching = [
        each for each in found if not text or any(text in word.casefold() for word in words(each))
    ]
    return Rows(tuple(matching[:ROWS]), len(matching))


def _gang_words(gang: GangReport) -> tuple[str, ...]:
    return gang.key, gang.queue, gang.phase, gang.reason, gang.message


def _queue_words(queue: QueueReport) -> tuple[str, ...]:
    return queue.name, queue.parent


def _node_words(node: NodeReport) -> tuple[str, ...]:
    return node.name, node.pool, node.resource, node.off

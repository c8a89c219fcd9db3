"""Collects the result of an import: GangQueues, what was left out and why, and advice."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.objects.queues.queue import GangQueue, GangQueueSpec, QueueMeta


class Fault(ValueError):  # noqa: N818 - a fault of the input, named as such
    """The input cannot be used; the message says where and why, in one line."""


class NotRead(Exception):  # noqa: N818 - what is wrong with the cluster, named as such
    """The cluster cannot be read; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Source:
    """One object of the input, as it was decoded, and where it was found."""

    place: str
    group: str
    kind: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about one field of one object, and what to do about it."""

    subject: str
    field: str
    value: str
    advice: str


@dataclass(slots=True)
class Outcome:
    """The result of an import.

    `left_out` is what the queues do not say although the input did; `advice` is what has to be
    said elsewhere, and loses nothing.
    """

    queues: list[GangQueue] = field(default_factory=list)
    left_out: list[Remark] = field(default_factory=list)
    advice: list[Remark] = field(default_factory=list)

    def add(self, name: str, spec: GangQueueSpec) -> None:
        """Add a queue."""
        self.queues.append(GangQueue(metadata=QueueMeta(name=name), spec=spec))

    def leave_out(self, subject: str, field: str, value: object, advice: str) -> None:
        """Say that something is lost."""
        self.left_out.append(Remark(subject, field, str(value), advice))

    def advise(self, subject: str, field: str, value: object, advice: str) -> None:
        """Say what has to be said elsewhere."""
        self.advice.append(Remark(subject, field, str(value), advice))

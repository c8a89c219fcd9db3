"""Reports which gangs, moved, would let a waiting one start."""

from __future__ import annotations

import msgspec


class PlacedReport(msgspec.Struct, frozen=True, rename="camel"):
    """So many pods of a gang on a node."""

    node: str
    pods: int


class StartReport(msgspec.Struct, frozen=True, rename="camel"):
    """The gang that starts once all moves are made, and where; `gpus` are those of its minimum.

    `waited_seconds` is since it was created, `expected` when it starts without moves, in RFC 3339,
    and `why` what tells so.
    """

    namespace: str
    name: str
    queue: str
    gpus: int
    waited_seconds: int
    nodes: tuple[PlacedReport, ...]
    expected: str
    why: str


class MoveReport(msgspec.Struct, frozen=True, rename="camel"):
    """One gang that is moved, and the GPU-hours that are lost `since` its start or checkpoint."""

    namespace: str
    name: str
    queue: str
    gpus: int
    lost_gpu_hours: float
    since: str
    is_checkpoint: bool
    sources: tuple[PlacedReport, ...] = msgspec.field(name="from")
    targets: tuple[PlacedReport, ...] = msgspec.field(name="to")


class MovedReport(msgspec.Struct, frozen=True, rename="camel"):
    """What became of a gang of a plan that was carried out, and when, in RFC 3339."""

    namespace: str
    name: str
    became: str
    at: str
    nodes: tuple[PlacedReport, ...] = ()


class LeftOutReport(msgspec.Struct, frozen=True, rename="camel"):
    """A gang that is not moved, and why."""

    namespace: str
    name: str
    why: str


class DefragReport(msgspec.Struct, frozen=True, rename="camel"):
    """The plan of moves for one waiting gang of a picture that was `taken` then.

    Without a `start` no plan helps, and `why` says that in numbers. `is_cheapest` says that no
    other moves lose less; else the bound of the search ended it. `done` is what came of it, where
    it was carried out.
    """

    taken: str
    start: StartReport | None = None
    moves: tuple[MoveReport, ...] = ()
    lost_gpu_hours: float = 0.0
    is_cheapest: bool = True
    why: str = ""
    tried: tuple[str, ...] = ()
    left_out: tuple[LeftOutReport, ...] = ()
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    done: tuple[MovedReport, ...] = ()

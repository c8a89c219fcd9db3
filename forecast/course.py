"""The result of a forecast: which gangs started, stopped and ended, when and after what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from scheduling.diagnosis.holes import Pool
from scheduling.model.gang import GangKey


class Basis(StrEnum):
    """What tells when a running gang ends."""

    DECLARED = "Declared"
    """Its own `muster.dev/expected-duration`."""
    DEFAULT = "Default"
    """`defaultDurationSeconds` of its queue."""
    LEARNED = "Learned"
    """How long gangs of its namespace or queue ran that ended."""
    OVERDUE = "Overdue"
    """It outlived its duration: it is taken to end at twice its age."""
    UNKNOWN = "Unknown"
    """Nothing."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A gang that waits as the forecast begins; `reason` and `message` say why after one cycle."""

    key: GangKey
    queue: str
    position: int
    asks: bool = False
    """Whether it asks for room."""
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """A gang that has its room: since when, until when, and what tells so."""

    queue: str
    began: float
    ends: float
    duration: float
    basis: Basis
    learned: str = ""
    """From what `duration` was learned, in words; "" where it was said."""


@dataclass(frozen=True, slots=True)
class Start:
    """A gang starts; `after` are the gangs that ended at that moment."""

    at: float
    after: tuple[GangKey, ...] = ()


@dataclass(slots=True)
class Course:
    """A forecast. Times are seconds since 1970.

    It was run from `began` to `reached`; `finished` says that nothing more ends then.
    """

    began: float
    reached: float
    finished: bool = False
    waiting: tuple[Waiting, ...] = ()
    running: Mapping[GangKey, Running] = field(default_factory=dict)
    """Those that had their room as it began."""
    starts: dict[GangKey, Start] = field(default_factory=dict)
    stops: dict[GangKey, float] = field(default_factory=dict)
    """Gangs that others made way for, or that lost their room."""
    lacking: frozenset[GangKey] = frozenset()
    """Gangs that had their room, and wait for room for lost pods once all was decided."""
    started: dict[GangKey, Running] = field(default_factory=dict)
    """What is expected of those that started in it."""
    pools: tuple[Pool, ...] = ()
    """The devices of the nodes once all was decided at its beginning."""

    def expected(self, key: GangKey) -> Running | None:
        """Return what is expected of a gang that runs, or comes to run."""
        return self.running.get(key) or self.started.get(key)

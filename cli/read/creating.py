"""Asks whether an object could be created: whether its kind is served, and who may create it.

The API server refuses an AppWrapper that wraps what is not served, or what its author may not
create (docs/app-wrapper-install.md). What no user could create does not fit; what its caller
may not create is judged all the same, for another may ask for its author, and a note says so.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cli.endings import CannotRead
from cli.fitting.asked import Asked
from cli.read.reader import Reader
from kube.api.access import Access, to_create
from kube.api.kinds import Kind, Served

RIGHTS_NAMED: Final = 5
"""Rights in one note: an AppWrapper may wrap objects of a thousand kinds."""

_AT_ONCE: Final = 16
_SWITCHED_OFF: Final = (
    "Muster takes no AppWrappers there: Deployment muster-coordinator has no "
    "MUSTER_COORDINATOR_APP_WRAPPERS=true, which the component app-wrapper sets"
)


@dataclass(frozen=True, slots=True)
class Creating:
    """Why an object cannot be created: `refusal` for all, `lacking` for the caller.

    `over_quota` is a refusal for now, `said` has other answers of a dry run, and `unread` names the
    questions without an answer.
    """

    refusal: str = ""
    lacking: tuple[Access, ...] = ()
    unread: str = ""
    over_quota: str = ""
    said: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the note on what the caller may not do, where there is any, and the others."""
        if not self.lacking:
            return self.said
        named = ", ".join(str(each) for each in self.lacking[:RIGHTS_NAMED])
        more = len(self.lacking) - RIGHTS_NAMED
        said = f"{named} and {more} more" if more > 0 else named
        lacks = f"you may not {said}: judged as if another user created it who may"
        return (lacks, *self.said)


@dataclass(frozen=True, slots=True)
class _Part:
    """The object itself, or one that it wraps: where it stands, its kind and what is in it."""

    where: str
    kind: Kind
    content: bytes = b"{}"


class Rights:
    """The rights of the caller, each asked for once, however many objects need it."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._asked: dict[Access, asyncio.Task[bool]] = {}

    async def held(self, access: Access) -> bool:
        """Say whether the caller has a right; raises CannotRead."""
        if access not in self._asked:
            self._asked[access] = asyncio.create_task(self._ask(access))
        return await self._asked[access]

    async def _ask(self, access: Access) -> bool:
        async with self._free:
            return await self._reader.may(access)


async def read_creating(
    reader: Reader, rights: Rights, asked: Asked, *, takes_app_wrappers: bool | None
) -> Creating:
    """Find out what is against the creation; `takes_app_wrappers` is None where it is not known."""
    try:
        needed = dict[Access, None]()
        for part in _parts(asked):
            served = await reader.served(part.kind)
            if refusal := _unserved(part, served):
                return Creating(refusal)
            assert served is not None
            needed |= dict.fromkeys(to_create(served, asked.namespace, part.content))
        if asked.kind == "AppWrapper" and takes_app_wrappers is False:
            return Creating(_SWITCHED_OFF)
        return Creating(lacking=await _lacking(rights, [*needed]))
    except CannotRead as fault:
        return Creating(unread=f"{fault}: it is not judged whether {asked} can be created")


def _parts(asked: Asked) -> Iterator[_Part]:
    yield _Part("", Kind(asked.api_version, asked.kind))
    for each in asked.wrapped:
        content = json.dumps(each.found).encode()
        yield _Part(f"{each.where}: ", Kind(each.api_version, each.kind), content)


def _unserved(part: _Part, served: Served | None) -> str:
    """Say why no user can create it; empty where the API server takes such objects."""
    if served is None:
        return f"{part.where}the cluster does not serve {part.kind}"
    if not served.resource.namespaced:
        return f"{part.where}{part.kind} has no namespace; allowed: a kind that has one"
    return ""


async def _lacking(rights: Rights, needed: Sequence[Access]) -> tuple[Access, ...]:
    answers = await asyncio.gather(*(rights.held(each) for each in needed))
    return tuple(each for each, held in zip(needed, answers, strict=True) if not held)

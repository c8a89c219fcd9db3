"""A reader of objects in memory, with the rights that a test gives its caller."""

import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from click.testing import CliRunner, Result

from cli.__main__ import main
from cli.endings import CannotRead, NotAllowed
from cli.read.dry_created import Answer, DryCreated
from kube.api.access import Access
from kube.api.kinds import Kind, Served
from kube.api.resources import Resource
from kube.objects.base import Labels
from tests.coordinator.builders import TEAM, Json
from tests.coordinator.world import World

T = TypeVar("T")
CLUSTER_WIDE = ""
OF_NO_NAMESPACE = ("ClusterRole",)
NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
_SETS = re.compile(r"(?P<key>\S+) (?P<operator>in|notin) \((?P<values>[^)]*)\)")


class MemoryReader:
    """Lists the objects of a world; `forbidden` are plural names that it may not list in all
    namespaces, or anywhere."""

    namespace = TEAM
    faults: tuple[str, ...] = ()
    unserved: Collection[str] = ()
    kubernetes = "1.37"
    lacking: Collection[str] = ()
    answers: Mapping[str, DryCreated] = MappingProxyType({})
    """What the API server says to a dry-run create, by plural; of others that it takes them."""
    schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """By group and version."""
    mute = False
    """Nothing is said of rights."""

    def __init__(
        self,
        objects: Callable[[str], Iterable[Json]],
        forbidden: Collection[str] = (),
        nowhere: Collection[str] = (),
    ) -> None:
        self.dry_created: list[tuple[str, str, Mapping[str, Any]]] = []
        self._objects, self._forbidden, self._nowhere = objects, forbidden, nowhere

    async def list(
        self,
        resource: Resource,
        as_: type[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[T, ...]:
        assert field_selector in ("", NOT_ENDED), "a selector that this reader does not know"
        self._judge(resource, namespace)
        found = (each for each in self._objects(resource.plural) if _is_in(each, namespace))
        return tuple(_as(each, as_) for each in found if _matches(each, label_selector))

    async def get(
        self, resource: Resource, as_: type[T], name: str, namespace: str = ""
    ) -> T | None:
        self._judge(resource, namespace or name)
        found = (each for each in self._objects(resource.plural) if _is_in(each, namespace))
        return next((_as(each, as_) for each in found if each["metadata"]["name"] == name), None)

    async def version(self) -> str:
        return self.kubernetes

    async def served(self, kind: Kind) -> Served | None:
        if kind.name in self.unserved:
            return None
        _, _, version = kind.api_version.rpartition("/")
        plural, place = f"{kind.name.lower()}s", kind.name not in OF_NO_NAMESPACE
        return Served(Resource(kind.group, version, plural, place), frozenset())

    async def may(self, access: Access) -> bool:
        if self.mute:
            raise CannotRead("it does not say")
        return str(access) not in self.lacking

    async def would_create(
        self, resource: Resource, namespace: str, manifest: Mapping[str, Any]
    ) -> DryCreated:
        self.dry_created.append((resource.plural, namespace, manifest))
        return self.answers.get(resource.plural, DryCreated(Answer.TAKEN))

    async def schema(self, resource: Resource) -> Mapping[str, Any]:
        version = f"{resource.group}/{resource.version}"
        if version not in self.schemas:
            raise CannotRead(f"there is no schema of {version}")
        return self.schemas[version]

    def _judge(self, resource: Resource, namespace: str) -> None:
        nowhere = resource.plural in self._nowhere
        if nowhere or (namespace == CLUSTER_WIDE and resource.plural in self._forbidden):
            raise NotAllowed(f"not allowed to list {resource.plural}")


def _is_in(found: Json, namespace: str) -> bool:
    return namespace in ("", found["metadata"].get("namespace", ""))


def _as(found: Json, as_: type[T]) -> T:
    return msgspec.json.decode(msgspec.json.encode(found), type=as_)


def _matches(found: Json, selector: str) -> bool:
    labels: Labels = found["metadata"].get("labels") or {}
    for each in _SETS.finditer(selector):
        inside = labels.get(each["key"]) in each["values"].split(",")
        if inside is (each["operator"] == "notin"):
            return False
    return True


def fit(reader: MemoryReader, *asked: Json, output: str = "json", more: str = "") -> Result:
    """Run `muster fit` on objects that are given on standard input."""

    @asynccontextmanager
    async def opened(_: Any) -> AsyncIterator[MemoryReader]:
        yield reader

    text = msgspec.json.encode({"kind": "List", "apiVersion": "v1", "items": list(asked)}).decode()
    return CliRunner().invoke(
        main, ["fit", "-f", "-", "-o", output, *more.split()], input=text, obj=opened
    )


def reader_of(world: World, **rights: Collection[str]) -> MemoryReader:
    return MemoryReader(world.api.all, **rights)


def answers(result: Result) -> list[Json]:
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    found: list[Json] = msgspec.json.decode(result.stdout)["objects"]
    return found


def answer(world: World, asked: Json, **rights: Collection[str]) -> Json:
    (found,) = answers(fit(reader_of(world, **rights), asked))
    return found

"""A reader of hand-made objects, which may refuse kinds, and how commands are run with it."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from click.testing import CliRunner, Result

from cli.__main__ import main
from cli.endings import CannotRead
from cli.read.dry_created import Answer, DryCreated
from cli.read.target import Target
from kube.api.access import Access
from kube.api.kinds import Kind, Served
from kube.api.resources import Resource


class FakeReader:
    """Lists by the plural of their kind; a refusal takes the place of a list.

    `(plural, namespace)` refuses the lists of one namespace, of all where it is empty. Objects of
    the names in `gets` are read one by one all the same.
    """

    gets: Collection[str] = ()
    kubernetes = "1.37"

    def __init__(
        self,
        lists: Mapping[str, Sequence[Any]],
        refusals: Mapping[tuple[str, str], CannotRead] | None = None,
    ) -> None:
        self._lists = lists
        self._refusals = refusals or {}
        self.faults: list[str] = []
        self.targets: list[Target] = []
        self.asked: list[tuple[str, str, str]] = []

    namespace = "team"

    @asynccontextmanager
    async def __call__(self, target: Target) -> AsyncIterator["FakeReader"]:
        """Stand in for `open_reader`."""
        self.targets.append(target)
        if ("", "") in self._refusals:
            raise self._refusals["", ""]
        yield self

    async def list(
        self,
        resource: Resource,
        as_: type[Any],  # noqa: ARG002 - the signature of a reader
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> tuple[Any, ...]:
        self.asked.append((resource.plural, namespace, label_selector or field_selector))
        if (resource.plural, namespace) in self._refusals:
            raise self._refusals[resource.plural, namespace]
        found = self._lists.get(f"{resource.plural} {label_selector or field_selector}".strip())
        found = self._lists.get(resource.plural, ()) if found is None else found
        return tuple(each for each in found if namespace in ("", each.metadata.namespace))

    @asynccontextmanager
    async def log(
        self,
        namespace: str,
        pod: str,
        params: Mapping[str, str],  # noqa: ARG002 - the client's
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        raise CannotRead(f"{namespace}/{pod} has no log here")
        yield

    async def get(
        self, resource: Resource, as_: type[Any], name: str, namespace: str = ""
    ) -> Any | None:
        if name in self.gets:
            found: Sequence[Any] = self._lists[resource.plural]
        else:
            found = await self.list(resource, as_, namespace=namespace)
        return next((each for each in found if each.metadata.name == name), None)

    async def version(self) -> str:
        if not self.kubernetes:
            raise CannotRead("no version here")
        return self.kubernetes

    async def served(self, kind: Kind) -> Served:
        plural = f"{kind.name.lower()}s"
        return Served(Resource(kind.group, kind.api_version, plural, True), frozenset())

    async def may(self, access: Access) -> bool:  # noqa: ARG002 - the signature of a reader
        return True

    async def would_create(
        self,
        resource: Resource,  # noqa: ARG002 - the signature of a reader
        namespace: str,  # noqa: ARG002
        manifest: Mapping[str, object],  # noqa: ARG002
    ) -> DryCreated:
        return DryCreated(Answer.TAKEN)

    async def schema(self, resource: Resource) -> Mapping[str, Any]:
        raise CannotRead(f"{resource.plural} have no schema here")


def run(reader: FakeReader, *arguments: str) -> Result:
    """Run a command with the reader in place of a cluster."""
    return CliRunner().invoke(main, arguments, obj=cast(Any, reader))

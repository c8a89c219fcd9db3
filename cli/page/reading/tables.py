"""Lists objects in the API server's table form, page by page: it sends columns, not the objects."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from cli.read.reader import cannot_read
from kube.api.bodies import decode
from kube.api.client import Client
from kube.api.errors import KubeError
from kube.api.resources import Resource
from kube.objects.base import ObjectMeta

FIRST: Final = 100
"""Rows of the first page: what is seen at once."""

FURTHER: Final = 500

_FORM: Final = {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}


class _Column(msgspec.Struct):
    name: str = ""


class _Partial(msgspec.Struct):
    metadata: ObjectMeta = ObjectMeta()


class _Row(msgspec.Struct):
    cells: list[Any] = []
    object: _Partial = msgspec.field(default_factory=_Partial)


class _TableMeta(msgspec.Struct):
    continue_: str = msgspec.field(default="", name="continue")


class _Table(msgspec.Struct, rename="camel"):
    metadata: _TableMeta = msgspec.field(default_factory=_TableMeta)
    column_definitions: list[_Column] = []
    rows: list[_Row] | None = None


class TableRow(msgspec.Struct, frozen=True):
    """One object: its metadata, and its cells by the name of their column in lower case."""

    metadata: ObjectMeta
    cells: Mapping[str, Any]

    def text(self, column: str) -> str:
        """Return a cell as text; empty where there is none."""
        found = self.cells.get(column)
        return "" if found is None else str(found)

    def number(self, column: str) -> int:
        """Return a cell as a number; 0 where there is none."""
        found = self.cells.get(column)
        return found if isinstance(found, int) else 0


async def table_pages(
    client: Client, resource: Resource, namespace: str = ""
) -> AsyncIterator[Sequence[TableRow]]:
    """Yield the rows of all objects of a kind, of one namespace or of all; raises CannotRead."""
    path = resource.path(namespace or None)
    params = {"limit": str(FIRST)}
    columns: list[str] = []
    while True:
        try:
            body = await client.request("GET", path, params=params, headers=_FORM)
            page = decode(body, _Table)
        except KubeError as error:
            raise cannot_read(error, resource, namespace) from error
        # Pages after the first one leave the columns out.
        columns = [each.name.lower() for each in page.column_definitions] or columns
        yield list(_rows(columns, page.rows or ()))
        if not page.metadata.continue_:
            return
        params = {"limit": str(FURTHER), "continue": page.metadata.continue_}


def _rows(columns: Sequence[str], rows: Sequence[_Row]) -> Iterator[TableRow]:
    for each in rows:
        yield TableRow(each.object.metadata, dict(zip(columns, each.cells, strict=False)))

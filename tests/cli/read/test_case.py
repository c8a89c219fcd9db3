"""The gang of an object is found by the name of the object, whatever runs it."""

from typing import Any, cast

import pytest

from cli.read.case import _gang
from cli.read.reader import Reader
from kube.objects.gang import Gang
from tests.cli.objects import gang


class FakeReader:
    def __init__(self, name: str) -> None:
        self.gang = gang(name)

    async def get(self, _resource: Any, kind: type[Any], name: str, _namespace: str) -> Any:
        return self.gang if kind is Gang and name == self.gang.metadata.name else None


@pytest.mark.parametrize(
    "name",
    ["train", "appwrapper.train", "appwrapper-mcad.train", "rayjob.train", "rayservice.train"],
)
async def test_by_the_name_of_its_object(name: str) -> None:
    found = await _gang(cast(Reader, FakeReader(name)), "team", "train")
    assert found.metadata.name == name

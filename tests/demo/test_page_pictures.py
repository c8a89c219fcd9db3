"""The pictures of the page are SVG, and load nothing from elsewhere."""

from xml.etree import ElementTree as ET

import pytest

from demo.page_pictures import VIEWS, picture
from tests.packaging.tree import ROOT

PICTURES = ROOT / "docs" / "pictures"


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_a_picture_is_one_file_without_scripts_and_addresses(name: str) -> None:
    path = PICTURES / f"{name}.svg"
    root = ET.fromstring(path.read_text())
    names = {each.tag.rpartition("}")[2] for each in root.iter()}
    assert {"svg", "foreignObject", "body", "style"} <= names
    assert not names & {"script", "link", "img"}
    assert {each.get("href") for each in root.iter()} <= {None, "#"}


def test_nothing_else_lies_there() -> None:
    """But for the plot of docs/foresee.md, which a benchmark draws."""
    drawn = {f"{name}.svg" for name in VIEWS}
    assert {each.name for each in PICTURES.iterdir()} == drawn | {"estimates.svg"}


def test_a_page_becomes_a_picture_of_its_size() -> None:
    svg = picture("<body xmlns='http://www.w3.org/1999/xhtml'><ul><li>a</li></ul></body>", 70)
    root = ET.fromstring(svg)
    assert (root.get("height"), root.get("viewBox")) == ("70", "0 0 1200 70")
    assert "".join(root.itertext()).split() == ["a"]

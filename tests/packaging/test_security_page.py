"""The tables of docs/security.md are what tests/controlplane/test_attacks.py tries."""

import re

from tests.controlplane.attacks import BY_BINDINGS, BY_GANGS, BY_PODS, BY_VALIDATION, RBAC, REQUESTS
from tests.controlplane.test_attacks import COSTS
from tests.packaging.tree import ROOT

ROW = re.compile(r"^\| `([a-z-]+)`(?:: [^|]*)? \| ([^|]*) \|$", re.MULTILINE)
IN_WORDS = {
    RBAC: "RBAC",
    BY_PODS: "policy `muster-pods`",
    BY_BINDINGS: "policy `muster-bindings`",
    BY_GANGS: "policy `muster-gangs`",
    BY_VALIDATION: "the API server's validation",
    "": "the API server: ",
}


REFUSED = "Attacks that are refused"


def section(heading: str) -> str:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def rows(heading: str) -> list[tuple[str, str]]:
    return ROW.findall(section(heading))


def refused() -> dict[str, str]:
    """Each attack that is refused, with what refuses it."""
    found = re.findall(
        r"^\| ([^|`]*(?:`muster-\w+`)?[^|`]*) \| (`[^|]*`) \|$", section(REFUSED), re.MULTILINE
    )
    return {name: by for by, named in found for name in re.findall(r"`([a-z-]+)`", named)}


def test_each_refused_attack_is_in_the_table_with_what_refuses_it() -> None:
    said = refused()
    assert said.keys() == REQUESTS.keys()
    for name, request in REQUESTS.items():
        assert said[name].startswith(IN_WORDS[request.refused_by]), name


def test_each_attack_that_costs_its_author_alone_is_in_the_table() -> None:
    found = rows("Attacks that cost their author alone")
    assert [name for name, _ in found] == list(COSTS)


def test_no_attack_is_tried_twice() -> None:
    assert not REQUESTS.keys() & COSTS.keys()
    assert len(REQUESTS) + len(COSTS) >= 20

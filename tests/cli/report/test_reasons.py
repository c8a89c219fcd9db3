"""The texts of reasons: one for each, the same in the documents and in `muster explain`."""

import re

import pytest

from cli.endings import Unusable
from cli.report.explained import explained
from cli.report.reasons import EXPLANATIONS
from scheduling.model.verdict import Reason
from tests.packaging.tree import ROOT

ROW = re.compile(r"^\| `(\w+)` \| (.+) \| (.+) \|$", re.MULTILINE)
MORE = re.compile(r";? ?\[more\]\([^)]*\)")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def documented() -> dict[str, tuple[str, str]]:
    """The table of reasons without its links: a terminal has none."""
    text = (ROOT / "docs/reasons.md").read_text(encoding="utf-8")
    section = text.partition("\n## Reasons\n")[2].partition("\n## ")[0]
    return {
        reason: (_plain(means), _plain(remedy)) for reason, means, remedy in ROW.findall(section)
    }


def _plain(text: str) -> str:
    return LINK.sub(r"\1", MORE.sub("", text))


def test_the_documents_say_of_each_reason_what_the_command_says() -> None:
    assert documented() == {each.value: tuple(said) for each, said in EXPLANATIONS.items()}


def test_every_reason_has_cause_and_remedy() -> None:
    assert set(EXPLANATIONS) == set(Reason)
    assert [each.reason for each in explained("").reasons] == [each.value for each in EXPLANATIONS]


def test_case_does_not_matter_and_a_wrong_word_is_told_the_nearest() -> None:
    (found,) = explained("insufficientresources").reasons
    assert found.reason == "InsufficientResources"
    with pytest.raises(Unusable, match="Pendig: no reason of Muster; allowed: Pending"):
        explained("Pendig")

"""What `muster release` asks, refuses and shows."""

import re

import pytest

from cli import confirming
from cli.endings import FINE, NO, WRONG_USE
from tests.cli.write.cluster import LABEL, Double
from tests.cli.write.conftest import (
    Run,
    held,
    lease,
    waiting,
)
from tests.packaging.tree import ROOT

# --- asking


async def test_a_dry_run_counts_and_changes_nothing(cluster: Double, muster: Run) -> None:
    cluster.add(
        *("gangs", "appwrapper.big", "team"),
        spec={},
        status={"held": {"phase": "Waiting"}, "phase": "Queued"},
    )
    done = await muster("release", "--all", "--dry-run")
    assert (done.exit_code, cluster.writes) == (FINE, [])
    for said in (
        "would delete 1 webhook configuration",
        "would delete 1 policy binding",
        "(1 Deployment to 0)",
        "would take Muster's gate off 3 pods",
        "would resume 1 RayCluster",
        "1 AppWrapper waits",
        "team/big; to start one, start Muster again, wait",
    ):
        assert said in done.stdout


async def test_without_a_terminal_and_without_yes_it_refuses(cluster: Double, muster: Run) -> None:
    done = await muster("release", "--all")
    assert (done.exit_code, cluster.writes) == (WRONG_USE, [])
    assert "add --yes" in done.stderr


@pytest.mark.parametrize(("answer", "code"), [("n\n", NO), ("y\n", FINE)])
async def test_a_person_is_asked(
    cluster: Double, muster: Run, answer: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirming, "is_terminal", lambda: True)
    done = await muster("release", "--all", answer=answer)
    assert done.exit_code == code
    assert (cluster.writes == []) is (code == NO)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name a gang"),
        (["--all", "-n", "team"], "--all is the whole cluster"),
        (["--all", "team/train"], "--all is the whole cluster"),
        (["a/b/c"], "allowed: NAME or NAMESPACE/NAME"),
        (["x/train", "-n", "team"], "is not in namespace team"),
    ],
)
async def test_a_wrong_command_line_is_refused(
    cluster: Double, muster: Run, arguments: list[str], said: str
) -> None:
    done = await muster("release", *arguments)
    assert (done.exit_code, cluster.writes) == (WRONG_USE, [])
    assert said in done.stderr


async def test_what_is_not_there_is_said(cluster: Double, muster: Run) -> None:
    done = await muster("release", "team/absent", "--yes")
    assert done.exit_code == NO
    assert "no RayCluster, RayJob or RayService absent in namespace team" in done.stderr


async def test_the_page_shows_what_it_says(cluster: Double, muster: Run) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    (shown,) = re.findall(
        r"^```text\n\$ muster release --all --yes\n(.*?)^```", page, re.MULTILINE | re.DOTALL
    )
    waiting(cluster, "many", 97)
    held(cluster, "later-too")
    cluster.add("validatingadmissionpolicybindings", "muster-more", labels=LABEL)
    lease(cluster, "muster-coordinator-abc-1")
    done = await muster("release", "--all", "--yes")
    said = shown.replace("waiting 15 s", "waiting 1 s").replace("until 30 s", "until 0 s")
    assert done.stdout == said

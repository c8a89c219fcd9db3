"""The page shows each person what Kubernetes lets that person read, of a real control plane."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from cli.endings import FINE
from cli.page.safety.callers import ByToken
from cli.page.server import application
from kube.objects import names
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, ray_cluster
from tests.controlplane.test_cli import account, bind, define, run
from tests.controlplane.test_managing import PEOPLE


@pytest.fixture
def tokens(plot: Plot) -> dict[str, str]:
    """The token of each kind of person, by the shipped roles; the admin's holds everywhere."""
    define(plot, "roles/rbac.yaml")
    paths = {name: account(plot, name) for name in PEOPLE}
    for name, role in PEOPLE.items():
        bind(plot, name, role, everywhere=name == "admin")
    plot.wait(
        lambda: all(run(each, "jobs").exit_code == FINE for each in paths.values()),
        "the roles to take effect",
    )
    return {name: token_of(path) for name, path in paths.items()}


def token_of(path: Path) -> str:
    found: str = yaml.safe_load(path.read_text())["users"][0]["user"]["token"]
    return found


@pytest.fixture
def lived(plot: Plot) -> Plot:
    """A gang that runs, with a job; one that waits; and a Ray cluster that is no gang."""
    plot.add_node(4)
    plot.create(gang("runs", group(replicas=1)))
    plot.wait_running("runs", 2)
    plot.create(gang("waits", group(replicas=3)))
    plot.create(ray_cluster("plain", group(replicas=1), labels={names.OPT_IN: "false"}))
    head = {"apiVersion": names.RAY_API_VERSION, "kind": "RayJob", "metadata": {"name": "nightly"}}
    spec = {"entrypoint": "true", "clusterSelector": {names.RAY_CLUSTER: "runs"}}
    plot.create({**head, "spec": spec})
    plot.wait_phase("waits", "Queued", "InsufficientResources")
    counted = f"RayCluster {plot.name}/plain"
    plot.wait(lambda: counted in plot.status("waits")["message"], "its refusal to name both")
    return plot


class Page:
    """The page as one person sees it."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def text(self, path: str) -> tuple[int, str]:
        async with self._session.get(f"/api/{path}") as answer:
            return answer.status, await answer.text()

    async def get(self, path: str, expected: int = 200) -> Any:
        status, text = await self.text(path)
        assert status == expected, text
        return json.loads(text)

    async def clusters(self, query: str = "") -> tuple[dict[str, Json], dict[str, Json], list[str]]:
        """Clusters and gangs by name, and what could not be read."""
        status, text = await self.text(f"clusters{query}")
        assert status == 200, text
        pieces = [json.loads(each) for each in text.splitlines()]
        assert pieces[-1] == {"whole": True}
        found = [
            {row["name"]: row for piece in pieces for row in piece.get(kind, [])}
            for kind in ("clusters", "gangs")
        ]
        return found[0], found[1], [each["unread"] for each in pieces if "unread" in each]


@asynccontextmanager
async def seen_by(plot: Plot, token: str) -> AsyncIterator[Page]:
    callers = ByToken(plot.cluster.server, str(plot.cluster.ca_file), 10.0)
    app = application(callers, [], None)
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        TestServer(app, host="127.0.0.1") as server,
        ClientSession(f"http://127.0.0.1:{server.port}", headers=headers) as session,
    ):
        yield Page(session)


async def test_each_of_the_three_sees_the_truth_as_far_as_rights_go(
    lived: Plot, tokens: dict[str, str]
) -> None:
    await check_namespace(lived, tokens)
    await check_beyond(lived, tokens)


async def check_namespace(plot: Plot, tokens: dict[str, str]) -> None:
    """All three read their namespace."""
    for person, token in tokens.items():
        async with seen_by(plot, token) as page:
            clusters, gangs, unread = await page.clusters(f"?namespace={plot.name}")
            assert {*clusters} == {"runs", "waits", "plain"}, person
            assert (clusters["waits"]["desired"], gangs["waits"]["phase"]) == (3, "Queued")
            assert (gangs["runs"]["phase"], unread) == ("Running", [])
            assert "plain" not in gangs
            await check_one(plot, page)
            (job,) = (await page.get(f"jobs?namespace={plot.name}"))["jobs"]
            assert (job["name"], job["cluster"]) == ("nightly", "runs")
            # Simulated nodes have no kubelet: the person may ask, and gets the API server's line.
            (head,) = (pod for pod in plot.pods("runs", "head"))
            name = head["metadata"]["name"]
            said = await page.get(f"logs/{plot.name}/{name}?container=ray-head&follow=true", 502)
            assert "cannot be read" in said["fault"]


async def check_one(plot: Plot, page: Page) -> None:
    """One that waits, one that runs, one that is no gang, and one that is not there."""
    waits = await page.get(f"clusters/{plot.name}/waits")
    assert waits["gang"]["message"] == plot.status("waits")["message"]
    assert waits["timeline"]["zones"][-1]["state"] == "waited"
    why = await page.get(f"gangs/{plot.name}/waits/why")
    assert (why["reason"], why["message"]) == ("InsufficientResources", waits["gang"]["message"])
    runs = await page.get(f"clusters/{plot.name}/runs")
    on = {each["name"]: each["node"] for each in runs["pods"]}
    assert on == {name: plot.node(node) for name, node in plot.bound("runs").items()}
    assert runs["timeline"]["zones"][-1]["state"] == "running"
    plain = await page.get(f"clusters/{plot.name}/plain")
    assert plain["gang"] is None
    assert 'muster.dev/gang is "false"' in plain["noGang"]
    assert "no RayCluster none" in (await page.get(f"clusters/{plot.name}/none", 404))["fault"]


async def check_beyond(plot: Plot, tokens: dict[str, str]) -> None:
    """Of what is beyond it rights decide, and those that are missing are named."""
    async with seen_by(plot, tokens["admin"]) as page:
        clusters, _, unread = await page.clusters()
        assert {"runs", "waits", "plain"} <= {*clusters}
        assert unread == []
        room = await page.get(f"room?namespace={plot.name}")
        assert any("list nodes and pods" in each for each in room["lacks"])
        assert room["queuesKnown"]
    for person in ("owner", "user"):
        async with seen_by(plot, tokens[person]) as page:
            clusters, gangs, unread = await page.clusters()
            assert (clusters, gangs, len(unread)) == ({}, {}, 2)
            assert all("may not list them" in each for each in unread)
            room = await page.get(f"room?namespace={plot.name}")
            assert (room["nodesKnown"], room["queuesKnown"]) == (False, False)
            assert await page.get("clusters/kube-system/x", 403)
    async with seen_by(plot, "not-a-token") as page:
        assert "log in again" in (await page.get("clusters", 401))["fault"]
        assert await page.get(f"clusters/{plot.name}/runs", 401)

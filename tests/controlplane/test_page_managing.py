"""Three kinds of people manage Ray clusters by the page: done, or refused by Kubernetes."""

import json
import ssl
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest
import trustme
from aiohttp.test_utils import BaseTestServer, TestServer

from cli.page.safety.callers import ByToken
from cli.page.safety.guards import only_our_writes
from cli.page.server import application
from kube.objects import names
from tests.cli.page.people import Tab, tab
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import gang, group, on_nodes
from tests.controlplane.test_cli import account
from tests.controlplane.test_managing import people_of, replicas
from tests.controlplane.test_page import token_of


def tokens_of(plot: Plot) -> dict[str, str]:
    """The token of each kind of person, by the shipped roles."""
    return {name: token_of(path) for name, path in people_of(plot).items()}


@pytest.fixture
def tokens(plot: Plot) -> dict[str, str]:
    return tokens_of(plot)


@asynccontextmanager
async def page_of(plot: Plot) -> AsyncIterator[tuple[BaseTestServer, str]]:
    """The page of the cluster, without TLS; gives its server and its origin."""
    callers = ByToken(plot.cluster.server, str(plot.cluster.ca_file), 10.0)
    page = application(callers, [only_our_writes("http", "")], None)
    async with TestServer(page, host="127.0.0.1") as server:
        yield server, f"http://127.0.0.1:{server.port}"


def model(plot: Plot, replicas: int = 2) -> None:
    """A RayCluster to copy, on the plot's nodes, of which none runs: it is suspended."""
    manifest = gang("model", group(replicas=replicas))
    manifest["spec"]["suspend"] = True
    plot.create(on_nodes(manifest, plot.selector))


async def done(who: Tab, path: str, **body: Any) -> str:
    status, found = await who.agreed(f"/api/manage/{path}", **body)
    assert status == 200, found
    said: str = found["done"]
    return said


async def refused(who: Tab, path: str, **body: Any) -> str:
    """What Kubernetes says, in one line, with its own status."""
    status, told = await who.post(f"/api/manage/{path}", body)
    if status == 200:
        status, told = await who.post(f"/api/manage/{path}", {**body, "agreed": told["asks"]})
    assert status == 403, told
    said: str = told["fault"]
    assert "\n" not in said
    return said


async def test_each_write_is_done_or_refused_by_the_rights_of_each_person(
    plot: Plot, tokens: dict[str, str]
) -> None:
    plot.add_node(8)
    model(plot)
    async with (
        page_of(plot) as (_, origin),
        tab(origin, tokens["owner"]) as owner,
        tab(origin, tokens["user"]) as user,
        tab(origin, tokens["admin"]) as admin,
    ):
        for person, who in (("owner", owner), ("user", user), ("admin", admin)):
            found = (await who.get("/api/session"))[1]
            assert found["user"] == f"system:serviceaccount:{plot.name}:{person}"
        await live(plot, owner)
        await use(plot, user)
        await configure(plot, admin, owner)


async def live(plot: Plot, owner: Tab) -> None:
    """The owner creates, edits, scales, suspends, resumes; another tab is told of it."""
    train, body = f"clusters/{plot.name}/train", {"like": "model"}
    told = (await owner.post(f"/api/manage/{train}/create", body))[1]
    assert "kind: RayCluster" in told["yaml"]
    assert any("not known whether it would start now" in each for each in told["notes"]) or (
        told["fit"]["objects"][0]["fits"] == "Unknown"
    )
    assert await done(owner, f"{train}/create", **body) == f"RayCluster {plot.name}/train created"
    plot.wait_running("train", 3)
    seen = (await owner.get(f"/api/manage/{train}"))[1]["state"]
    edit = {"state": seen, "form": {"groups": [{"name": "workers", "max": 5}]}}
    await done(owner, f"{train}/edit", **edit)
    status, told = await owner.post(f"/api/manage/{train}/edit", {**edit, "agreed": ""})
    assert (status, "changed by others meanwhile" in told["fault"]) == (409, True)
    seen = (await owner.get(f"/api/manage/{train}"))[1]["state"]
    await done(owner, f"{train}/scale", state=seen, targets=["workers=1"])
    assert replicas(plot, "train") == 1
    await done(owner, f"{train}/suspend")
    await done(owner, f"{train}/resume")


async def use(plot: Plot, user: Tab) -> None:
    """The user submits a job and deletes it, and changes no Ray cluster."""
    train = f"clusters/{plot.name}/train"
    seen = (await user.get(f"/api/manage/{train}"))[1]["state"]
    may_not = f"may not patch rayclusters.ray.io in namespace {plot.name}"
    for verb, body in (
        ("edit", {"state": seen, "form": {"queue": "q"}}),
        ("scale", {"state": seen, "targets": ["workers=2"]}),
        ("suspend", {}),
    ):
        assert may_not in await refused(user, f"{train}/{verb}", **body)
    assert "may not delete rayclusters" in await refused(user, f"{train}/delete")
    mine = f"clusters/{plot.name}/mine/create"
    assert "may not create rayclusters" in await refused(user, mine, like="model")
    job = {"entrypoint": "python -c pass", "cluster": "train"}
    await done(user, f"jobs/{plot.name}/nightly/submit", job=job)
    spec = plot.get("RayJob", "nightly")["spec"]
    assert spec["clusterSelector"] == {names.RAY_CLUSTER: "train"}
    await done(user, f"jobs/{plot.name}/nightly/delete")


async def configure(plot: Plot, admin: Tab, owner: Tab) -> None:
    """The admin makes a queue and changes it, and deletes what the owner made."""
    name = plot.queue("by-page")
    queue = {"quota": {"cpu": "2"}, "namespaces": [plot.name]}
    assert "may not create gangqueues" in await refused(owner, f"queues/{name}/create", queue=queue)
    await done(admin, f"queues/{name}/create", queue=queue)
    selector = (f"{key}={value}" for key, value in plot.selector.items())
    plot.cluster.kubectl("label", "gangqueue", name, *selector)
    seen = (await admin.get(f"/api/manage/queues/{name}"))[1]["state"]
    edit = {"state": seen, "queue": {"quota": {"cpu": "4"}}}
    assert await done(admin, f"queues/{name}/edit", **edit) == f"GangQueue {name} changed"
    await done(admin, f"clusters/{plot.name}/train/delete")


@pytest.mark.variant
def test_the_command_serves_people_over_tls_each_with_their_own_rights(
    plot: Plot, tmp_path: Path
) -> None:
    """As its manifest has it: without a kubeconfig, and without a token of its own."""
    cluster, port = plot.cluster, plot.cluster.ports.allocate()
    authority = trustme.CA()
    pair = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    pair.cert_chain_pems[0].write_to_path(certificate)
    pair.private_key_pem.write_to_path(key)
    command = [sys.executable, "-m", "cli", "dashboard", "--in-cluster", "--listen", "127.0.0.1"]
    command += ["--port", str(port), "--certificate", str(certificate), "--key", str(key)]
    command += ["--api-server", cluster.server, "--api-server-ca", str(cluster.ca_file)]
    process = cluster.spawn("dashboard", command)
    context = ssl.create_default_context()
    authority.configure_trust(context)

    def asked(path: str, token: str) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = urllib.request.Request(f"https://127.0.0.1:{port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(url, timeout=10, context=context) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            return error.code, json.load(error)
        except OSError as error:
            return 0, str(error)

    token = token_of(account(plot, "nobody"))
    plot.wait(lambda: asked("/api/session", token)[0] == 200, "the page to be served")
    assert asked("/api/session", token)[1]["user"] == f"system:serviceaccount:{plot.name}:nobody"
    status, found = asked(f"/api/clusters/{plot.name}/train", token)
    assert (status, "not allowed to read" in found["fault"]) == (403, True)
    for none in ("", "not-a-token"):
        status, found = asked(f"/api/clusters/{plot.name}/train", none)
        assert (status, found["needs"]) == (401, "token")
    process.kill()

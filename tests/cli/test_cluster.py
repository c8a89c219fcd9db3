"""Objects of a cluster are read with the caller's kubeconfig, in the version that is served."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from cli import import_command
from cli.__main__ import main
from tests.cli.api_server import kubeconfig, reached_by_kubeconfig
from tests.cli.checks import Json

GROUP = "/apis/kueue.x-k8s.io"
QUEUE: Json = {"metadata": {"name": "q"}, "spec": {"namespaceSelector": {}}}


class Api:
    """Answers by path, in pages of one object; other paths are not served."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Json]] = {}
        self.groups = {GROUP: ["v1beta2", "v1beta1"]}
        self.forbidden = ""
        self.expired = False

    async def handle(self, request: web.Request) -> web.Response:
        if self.expired:
            said = {"kind": "Status", "reason": "Unauthorized", "message": "Unauthorized"}
            return web.json_response(said, status=401)
        if request.path == self.forbidden:
            said = {"kind": "Status", "reason": "Forbidden", "message": "you may not\nlist these"}
            return web.json_response(said, status=403)
        if request.path in self.groups:
            versions = [{"version": each} for each in self.groups[request.path]]
            return web.json_response({"kind": "APIGroup", "versions": versions})
        if request.path not in self.answers:
            return web.json_response({"kind": "Status", "reason": "NotFound"}, status=404)
        at, items = int(request.query.get("continue", "0")), self.answers[request.path]
        token = str(at + 1) if at + 1 < len(items) else ""
        page = {"metadata": {"continue": token}, "items": items[at : at + 1]}
        return web.json_response(page)


@pytest.fixture
async def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """A server, and a kubeconfig with it under the context `here`."""
    api = Api()
    async with reached_by_kubeconfig(api.handle, tmp_path, monkeypatch):
        yield api


async def run(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, ["import", "kueue", *arguments])


async def test_all_pages_of_all_kinds_in_the_version_that_has_them(api: Api) -> None:
    other = {"metadata": {"name": "r"}, "spec": {"cohort": "c"}}
    api.answers[f"{GROUP}/v1beta2/clusterqueues"] = [QUEUE, other]
    api.answers[f"{GROUP}/v1beta1/cohorts"] = [{"metadata": {"name": "c"}}]
    done = await run()
    assert done.exit_code == import_command.ALL_MAPPED, done.stderr
    assert [line for line in done.stdout.splitlines() if "  name: " in line] == [
        "  name: c",
        "  name: r",
        "  name: q",
    ]


async def test_a_token_that_ended_is_said(api: Api) -> None:
    api.expired = True
    assert_not_read(await run(), "the credentials are wrong or have expired, log in again: 401")


def test_a_cluster_that_nobody_serves_is_said(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps(kubeconfig("http://127.0.0.1:1")))
    done = CliRunner().invoke(main, ["import", "kueue", "--kubeconfig", str(path)])
    assert_not_read(done, "the API server cannot be reached: GET /apis/kueue.x-k8s.io: no")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--context", "there"], "there"),
        (["--kubeconfig", "/nowhere/config"], "kubeconfig /nowhere/config (--kubeconfig): no such"),
    ],
)
async def test_a_cluster_that_is_not_found_is_exit_code_3(
    api: Api, arguments: list[str], said: str
) -> None:
    assert_not_read(await run(*arguments), said)


async def test_a_cluster_that_forbids_it_or_has_no_such_group_is_exit_code_3(api: Api) -> None:
    api.forbidden = f"{GROUP}/v1beta2/clusterqueues"
    assert_not_read(await run(), "403 Forbidden: you may not list these")
    del api.groups[GROUP]
    assert_not_read(await run(), "does not serve kueue.x-k8s.io: Kueue is not installed there")


async def test_a_cluster_without_such_objects_has_nothing_to_import(api: Api) -> None:
    done = await run()
    assert done.exit_code == import_command.BAD_INPUT
    assert done.stderr.startswith("Error: the cluster: there is no object to import")


def assert_not_read(done: Result, said: str) -> None:
    assert (done.exit_code, done.stdout) == (import_command.NO_CLUSTER, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1

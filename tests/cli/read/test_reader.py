"""Lists are read in pages from an API server; each fault of it is one sentence with its remedy."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from cli.__main__ import main
from cli.endings import FINE, NO, NOT_READ, CannotRead
from cli.read.reader import open_reader
from cli.read.target import Target
from kube.api.kubeconfig_entries import context_namespace
from kube.api.resources import GANGS, PODS
from kube.objects.core import Pod
from kube.objects.gang import Gang
from tests.cli.api_server import reached_by_kubeconfig, refusal

Json = dict[str, object]
PATH = "/apis/muster.dev/v1alpha1/gangs"


class Api:
    """Answers lists by path, in pages of one object, or a Status in their place."""

    def __init__(self) -> None:
        self.lists: dict[str, Sequence[Json]] = {
            PATH: [],
            "/apis/muster.dev/v1alpha1/gangqueues": [],
        }
        self.documents: dict[str, Json] = {}
        self.status: tuple[int, str, str] | None = None
        self.expire = 0
        self.silent = False

    async def handle(self, request: web.Request) -> web.Response:
        if self.silent:
            await asyncio.sleep(60)
        if self.status:
            code, reason, message = self.status
            return refusal(code, reason, message)
        at = int(request.query.get("continue", "0"))
        if at and self.expire:
            self.expire -= 1
            return refusal(410, "Expired", "the provided continue parameter is too old")
        if request.path in self.documents:
            return web.json_response(self.documents[request.path])
        if request.path not in self.lists:
            return web.Response(status=404, text="404 page not found")
        items = self.lists[request.path]
        token = str(at + 1) if at + 1 < len(items) else ""
        body = {"metadata": {"continue": token}, "items": items[at : at + 1]}
        return web.json_response(body)


@pytest.fixture
async def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Api]:
    """A server, and a kubeconfig with it under the context `here`."""
    api = Api()
    async with reached_by_kubeconfig(api.handle, tmp_path, monkeypatch):
        yield api


async def run(*arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, arguments)


def named(name: str, **fields: object) -> Json:
    return {"metadata": {"name": name, "namespace": "team"}, **fields}


async def test_all_pages_are_read_and_begun_anew_where_a_place_in_them_expires(api: Api) -> None:
    api.lists[PATH] = [named("a"), named("b"), named("c")]
    api.expire = 1
    async with open_reader(Target()) as reader:
        found = await reader.list(GANGS, Gang)
    assert [each.metadata.name for each in found] == ["a", "b", "c"]


async def test_an_object_that_cannot_be_decoded_is_left_out_and_said(api: Api) -> None:
    api.lists["/api/v1/pods"] = [named("good"), named("bad", spec={"containers": 7})]
    async with open_reader(Target()) as reader:
        found = await reader.list(PODS, Pod)
        assert [each.metadata.name for each in found] == ["good"]
        (said,) = reader.faults
    assert said.startswith("Pod team/bad is left out: Expected `array | null`, got `int`")


async def test_what_is_read_again_is_not_said_again_and_not_once_it_is_mended(api: Api) -> None:
    """The page in the browser reads with one reader for days."""
    api.lists["/api/v1/pods"] = [named("bad", spec={"containers": 7})]
    async with open_reader(Target()) as reader:
        for _ in range(3):
            await reader.list(PODS, Pod)
        assert len(reader.faults) == 1
        api.lists["/api/v1/pods"] = [named("bad")]
        await reader.list(PODS, Pod)
        assert list(reader.faults) == []


async def test_the_schema_of_a_kind_is_read_where_its_group_and_version_have_it(api: Api) -> None:
    api.documents = {"/openapi/v3/apis/muster.dev/v1alpha1": {"a": 1}, "/openapi/v3/api/v1": {}}
    async with open_reader(Target()) as reader:
        assert (await reader.schema(GANGS), await reader.schema(PODS)) == ({"a": 1}, {})
        api.documents = {}
        with pytest.raises(CannotRead, match="its schema cannot be read"):
            await reader.schema(PODS)


@pytest.mark.parametrize(
    ("place", "more"),
    [
        ("at the cluster scope", ""),
        ('in the namespace "team"', ': requires "container.nodes.list" permission'),
    ],
)
async def test_a_right_that_is_lacking_is_said_once_with_what_a_provider_adds(
    api: Api, place: str, more: str
) -> None:
    what = 'resource "nodes" in API group ""'
    api.status = (403, "Forbidden", f'nodes is forbidden: User "eve" cannot list {what} {place}')
    api.status = (*api.status[:2], api.status[2] + more)
    done = await run("status", "-A")
    said = "not allowed to read gangs.muster.dev in all namespaces: eve may not list them"
    assert done.stderr == f"Error: {said}{more}\n"


async def test_the_namespace_is_that_of_the_context(api: Api) -> None:
    async with open_reader(Target()) as reader:
        assert reader.namespace == "team"
    async with open_reader(Target(context="bare")) as reader:
        assert reader.namespace == "default"


def test_in_a_cluster_it_is_that_of_the_account(tmp_path: Path) -> None:
    inside = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert context_namespace(environ=inside, service_account=tmp_path) == "default"
    (tmp_path / "namespace").write_text("jobs\n")
    assert context_namespace(environ=inside, service_account=tmp_path) == "jobs"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            (401, "Unauthorized", "Unauthorized"),
            "the credentials are wrong or have expired, log in",
        ),
        ((403, "Forbidden", 'User "eve" cannot list'), "not allowed to read gangs.muster.dev in"),
        (
            (404, "NotFound", ""),
            "does not serve gangs.muster.dev in version v1alpha1: Muster is not",
        ),
        ((500, "InternalError", "etcd\nis gone"), "gangs.muster.dev cannot be read: 500"),
        ((429, "TooManyRequests", "later"), "cannot be read: 429"),
    ],
)
async def test_a_fault_of_the_api_server_is_one_line_and_exit_code_3(
    api: Api, status: tuple[int, str, str], said: str
) -> None:
    api.status = status
    done = await run("queue")
    assert (done.exit_code, done.stdout) == (NOT_READ, "")
    assert said in done.stderr
    assert done.stderr.startswith("Error: ")
    assert done.stderr.count("\n") == 1


async def test_a_server_that_does_not_answer_is_waited_for_as_long_as_is_said(api: Api) -> None:
    api.silent = True
    done = await run("status", "--request-timeout", "0.2")
    assert done.exit_code == NOT_READ
    assert "within --request-timeout" in done.stderr


async def test_bytes_that_are_no_list_are_one_line_and_exit_code_3(api: Api) -> None:
    api.lists[PATH] = "no"  # type: ignore[assignment] # two pages of a letter each
    done = await run("queue")
    assert (done.exit_code, done.stdout) == (NOT_READ, "")
    assert "gangs.muster.dev cannot be decoded" in done.stderr


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
    done = await run("status", *arguments)
    assert (done.exit_code, done.stdout) == (NOT_READ, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


async def test_a_port_that_nothing_listens_on_is_exit_code_3(
    api: Api, tmp_path: Path, unused_tcp_port: int
) -> None:
    text = (tmp_path / "config").read_text()
    server = json.loads(text)["clusters"][0]["cluster"]["server"]
    (tmp_path / "dead").write_text(text.replace(server, f"http://127.0.0.1:{unused_tcp_port}"))
    done = await run("nodes", "--kubeconfig", str(tmp_path / "dead"))
    assert done.exit_code == NOT_READ
    assert "the API server cannot be reached" in done.stderr
    assert done.stderr.count("\n") == 1


async def test_a_gang_that_is_not_there_is_told_from_a_kind_that_is_not_served(api: Api) -> None:
    api.status = (404, "NotFound", 'gangs.muster.dev "train" not found')
    done = await run("why", "train")
    assert done.exit_code == NO, done.stderr
    api.status = (404, "", "")
    assert (await run("why", "train")).exit_code == NOT_READ


async def test_an_empty_cluster_is_an_answer(api: Api) -> None:
    api.lists |= {"/api/v1/nodes": [], "/api/v1/pods": []}
    done = await run("status")
    assert (done.exit_code, done.stderr) == (FINE, "")
    assert "0 gangs" in done.stdout

"""What `muster fit` reads and prints."""

import asyncio
import copy
from pathlib import Path

import msgspec
import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner

from cli.__main__ import main
from cli.endings import FINE, NO, WRONG_USE
from kube.api.access import Access
from tests.cli.fitting.reader import answers, fit, reader_of
from tests.coordinator.api import PLURALS
from tests.coordinator.app_wrappers import app_wrapper, job
from tests.coordinator.builders import (
    GPU,
    TEAM,
    Json,
    foreign_pod,
    gang_of,
    node,
)
from tests.coordinator.world import World

# ---- input


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"spec": None}, "RayCluster: spec: absent; allowed: an object"),
        ({"spec": []}, "RayCluster: spec: list; allowed: an object"),
        ({"spec": {"workerGroupSpecs": []}}, "RayCluster: spec.headGroupSpec: absent"),
        (
            {"spec": {"headGroupSpec": {}, "workerGroupSpecs": [{"replicas": "x"}]}},
            "cannot be read",
        ),
        ({"kind": "Deployment"}, "there is no object to judge"),
    ],
)
def test_bad_input_is_said_in_one_line(change: Json, said: str) -> None:
    result = fit(reader_of(World(node("a"))), {**gang_of("train", 1), **change})
    assert result.exit_code == WRONG_USE, result.output
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def test_other_objects_are_left_out_with_a_note() -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    secret = {**other, "kind": "Secret"}
    result = fit(reader_of(World(node("a"))), gang_of("train", 1), other, secret, other, other)
    assert result.exit_code == FINE
    assert result.stderr.count("not judged") == 2
    assert "items[1]: ConfigMap and 2 more: not judged" in result.stderr
    assert "items[2]: Secret: not judged" in result.stderr


# ---- what people read


def test_the_table_names_the_nodes() -> None:
    world = World(*(node(f"n{at}", cpu=2) for at in range(8)))
    plain, wide = (
        fit(reader_of(world), gang_of("train", 12), output=form).stdout
        for form in ("table", "wide")
    )
    assert plain.splitlines()[0] == "RayCluster team/train: fits now (queue default)"
    assert "more" in plain
    assert all(f"n{at}" in wide for at in range(7))


def test_the_table_says_why_not_and_how_many_would() -> None:
    world = World(node("a", cpu=8), foreign_pod("other", "a", cpu=4))
    shown = fit(reader_of(world), gang_of("train", 4), output="table").stdout.splitlines()
    assert shown[0] == "RayCluster team/train: does not fit now (queue default, position 1)"
    assert shown[1].startswith("  InsufficientResources: 3 of 4 workers fit beside headgroup")
    assert shown[2] == "  workers: 3 of 4 replicas would fit, the rest as asked"


def test_yaml_and_json_say_the_same() -> None:
    world = World(node("a"))
    as_yaml = fit(reader_of(world), gang_of("train", 1), output="yaml").stdout
    as_json = fit(reader_of(world), gang_of("train", 1)).stdout
    assert yaml.safe_load(as_yaml) == msgspec.json.decode(as_json)
    assert GPU not in as_json


DISCOVERY = {
    "kind": "APIGroupDiscoveryList",
    "items": [
        {
            "metadata": {"name": "ray.io"},
            "versions": [
                {
                    "version": "v1",
                    "resources": [
                        {
                            "resource": "rayclusters",
                            "responseKind": {"kind": "RayCluster"},
                            "scope": "Namespaced",
                            "verbs": ["create"],
                        }
                    ],
                }
            ],
        }
    ],
}


async def test_no_write_reaches_the_api_server(tmp_path: Path) -> None:
    """Through the real client: GETs, dry runs, and what asks for the caller's rights.

    With an answer that fits and one that does not.
    """
    world, methods, dry = World(node("a", cpu=4)), list[str](), list[str]()
    reviews: list[Json] = []

    async def answered(request: web.Request) -> web.Response:
        if request.path.endswith("/selfsubjectaccessreviews"):
            reviews.append((await request.json())["spec"]["resourceAttributes"])
            return web.json_response({"status": {"allowed": True}}, status=201)
        if request.method == "POST" and request.query.get("dryRun") == "All":
            assert request.query["fieldValidation"] == "Strict"
            dry.append(request.path.rpartition("/")[2])
            return web.json_response(await request.json(), status=201)
        methods.append(request.method)
        if request.path in ("/api", "/apis"):
            return web.json_response(DISCOVERY)
        plural = request.path.rpartition("/")[2]
        if plural not in PLURALS.values():
            said = {"kind": "Status", "reason": "NotFound", "code": 404}
            return web.json_response(said, status=404)
        return web.json_response({"items": list(world.api.all(plural))})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answered)
    asked = tmp_path / "asked.json"
    async with TestServer(app, host="127.0.0.1") as server:
        config = {
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
            "current-context": "here",
        }
        path = tmp_path / "config"
        path.write_bytes(msgspec.json.encode(config))
        for workers, code in ((3, FINE), (4, NO)):
            asked.write_bytes(msgspec.json.encode(gang_of("train", workers)))
            command = ["fit", "-f", str(asked), "--kubeconfig", str(path)]
            done = await asyncio.to_thread(CliRunner().invoke, main, command)
            assert done.exit_code == code, done.output
            assert "can be created" not in done.stderr
    assert set(methods) == {"GET"}
    assert dry.count("rayclusters") == 2
    assert dry.count("pods") == 4
    asked_of = {"verb": "create", "group": "ray.io", "version": "v1", "resource": "rayclusters"}
    assert reviews == [{**asked_of, "namespace": TEAM, "name": ""}] * 2


def test_each_object_with_a_generated_name_is_one_of_its_own() -> None:
    one, job_of = gang_of("train", 2), app_wrapper("train", job("work", pods=1))
    for each in (one, job_of):
        each["metadata"] = {**each["metadata"], "generateName": "train-"}
        del each["metadata"]["name"]
    done = fit(reader_of(World(node("a", cpu=32))), *map(copy.deepcopy, (one, one, job_of, job_of)))
    assert done.exit_code == FINE, done.stderr
    assert [each["name"] for each in answers(done)] == ["train-~", "train-~2"] * 2


def test_a_right_is_asked_for_once() -> None:
    reader, asked = reader_of(World(node("a", cpu=32))), list[str]()

    async def may(access: Access) -> bool:
        asked.append(str(access))
        return True

    reader.may = may  # type: ignore[method-assign]
    assert fit(reader, *(gang_of(f"t{at}", 1) for at in range(9))).exit_code == FINE
    assert len(asked) == len({*asked}) == 1

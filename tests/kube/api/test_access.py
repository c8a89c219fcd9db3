"""What a user is asked for, before something is created on the user's behalf."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from pytest_aiohttp import AiohttpServer

from kube.api.access import Access, is_allowed, to_create
from kube.api.client import Client
from kube.api.credentials import open_access
from kube.api.errors import Garbled, KubeError
from kube.api.kinds import Served
from kube.api.resources import Resource
from kube.objects.user import LONGEST, User, read_user, write_user

RBAC = "rbac.authorization.k8s.io"
USER = User("joe", "u-1", ("team", "system:authenticated"), {"scopes": ("a", "b")})


def served(group: str, plural: str) -> Served:
    return Served(Resource(group, "v1", plural), frozenset(("create",)))


def needs(group: str, plural: str, **template: Any) -> set[str]:
    found = to_create(served(group, plural), "ns", orjson.dumps(template))
    return {str(each) for each in found}


def test_to_create_an_object_is_enough_but_for_roles() -> None:
    assert needs("apps", "deployments") == {"create deployments.apps in namespace ns"}
    assert needs("", "configmaps") == {"create configmaps in namespace ns"}


def test_a_role_asks_for_escalate_and_a_binding_for_bind() -> None:
    named = {"metadata": {"name": "mine"}}
    assert needs(RBAC, "roles", **named) == {
        f"create roles.{RBAC} in namespace ns",
        f"escalate roles.{RBAC} mine in namespace ns",
    }
    admin = {"kind": "ClusterRole", "name": "admin"}
    assert needs(RBAC, "rolebindings", roleRef=admin, **named) == {
        f"create rolebindings.{RBAC} in namespace ns",
        f"bind clusterroles.{RBAC} admin in namespace ns",
    }
    own = {"kind": "Role", "name": "own"}
    assert f"bind roles.{RBAC} own in namespace ns" in needs(RBAC, "rolebindings", roleRef=own)


@pytest.mark.parametrize("template", [b"[]", b"{", b'{"roleRef":3}', b'{"metadata":[]}'])
def test_what_cannot_be_read_asks_for_more_and_never_less(template: bytes) -> None:
    found = to_create(served(RBAC, "rolebindings"), "ns", template)
    assert f"bind roles.{RBAC} in namespace ns" in {str(each) for each in found}


ACCESS = Access("create", "apps", "v1", "deployments", "ns")


@pytest.mark.parametrize("allowed", [True, False])
async def test_the_whole_user_is_asked_about(aiohttp_server: AiohttpServer, allowed: bool) -> None:
    seen: list[Any] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(await request.json())
        return web.json_response({"status": {"allowed": allowed, "denied": not allowed}})

    application = web.Application()
    application.router.add_post("/apis/authorization.k8s.io/v1/subjectaccessreviews", answer)
    server = await aiohttp_server(application)
    async with Client(open_access(str(server.make_url("")))) as client:
        assert await is_allowed(client, USER, ACCESS) is allowed
    (review,) = seen
    assert review["spec"] == {
        "user": "joe",
        "uid": "u-1",
        "groups": ["team", "system:authenticated"],
        "extra": {"scopes": ["a", "b"]},
        "resourceAttributes": {
            "verb": "create",
            "group": "apps",
            "version": "v1",
            "resource": "deployments",
            "namespace": "ns",
            "name": "",
        },
    }


async def test_no_answer_is_no_permission(aiohttp_server: AiohttpServer) -> None:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="<html>")

    application = web.Application()
    application.router.add_post("/apis/authorization.k8s.io/v1/subjectaccessreviews", answer)
    server = await aiohttp_server(application)
    async with Client(open_access(str(server.make_url("")))) as client:
        with pytest.raises(Garbled) as caught:
            await is_allowed(client, USER, ACCESS)
    assert isinstance(caught.value, KubeError)


# ---- the note


def test_a_note_says_again_what_was_noted() -> None:
    note = write_user(USER)
    assert note is not None
    assert read_user(note) == USER


def test_too_long_a_note_is_none() -> None:
    assert write_user(User("joe", groups=("g" * LONGEST,))) is None


@given(st.text() | st.just('{"username":""}') | st.just("[" * 100_000))
def test_what_names_no_user_is_none(note: str) -> None:
    found = read_user(note)
    assert found is None or found.username

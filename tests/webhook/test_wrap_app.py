"""Reviews of AppWrappers are answered in time; what is not known of rights is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

from kube.api.access import Access
from kube.api.errors import Unreachable
from kube.api.kinds import Kind, Served
from kube.api.resources import Resource
from kube.objects import names
from kube.objects.user import User, service_account
from tests.webhook.samples import Json
from tests.webhook.wrappers import JOE, JOES_NOTE, config_map, deployment, review_of, wrapper
from webhook.metrics import Metrics
from webhook.settings import Settings
from webhook.wrap_app import REVIEWS_AT_ONCE, WrapWebhook

JSON = {"Content-Type": "application/json"}
MUSTER = service_account("system:serviceaccount:muster-system:muster-wrapper")
ALL = frozenset(("create", "get", "delete"))
SERVED = {
    Kind("v1", "ConfigMap"): Served(Resource("", "v1", "configmaps"), ALL),
    Kind("v1", "Secret"): Served(Resource("", "v1", "secrets"), ALL),
    Kind("apps/v1", "Deployment"): Served(Resource("apps", "v1", "deployments"), ALL),
    Kind("example.com/v1", "Wide"): Served(Resource("example.com", "v1", "wides", False), ALL),
    Kind("v1", "Question"): Served(Resource("", "v1", "questions"), frozenset(("create",))),
}


class Cluster:
    """Knows some kinds, and what is allowed; counts what it is asked."""

    def __init__(self, *lacking: str) -> None:
        self.lacking = lacking
        self.asked: list[Access] = []
        self.asked_of_muster: list[Access] = []
        self.not_granted: tuple[tuple[str, str], ...] = ()
        self.at_once = self.most_at_once = 0

    async def find(self, kind: Kind) -> Served | None:
        return SERVED.get(kind)

    async def is_allowed(self, user: User, access: Access) -> bool:
        if user.username != JOE["username"]:
            return self.may_create(user, access)
        self.asked.append(access)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        return access.resource not in self.lacking

    def may_create(self, user: User, access: Access) -> bool:
        """Say what muster-wrapper may."""
        assert user == MUSTER
        self.asked_of_muster.append(access)
        return (access.verb, access.resource) not in self.not_granted


class Silent(Cluster):
    """Never says what is allowed."""

    async def is_allowed(self, user: User, access: Access) -> bool:  # noqa: ARG002
        await asyncio.Event().wait()
        raise AssertionError


class Cut(Cluster):
    """Cannot be reached."""

    async def find(self, kind: Kind) -> Served | None:  # noqa: ARG002
        raise Unreachable("connection refused", sent=False)


async def ask(
    cluster: Cluster, review: Json | bytes, metrics: Metrics | None = None, rule: str = "judge"
) -> tuple[int, Json]:
    settings = Settings(app_wrappers="All", rights_deadline_seconds=0.2)
    webhook = WrapWebhook(settings, cluster, cluster.is_allowed, metrics or Metrics())
    application = Application()
    application.router.add_post("/judge", webhook.judge)
    application.router.add_post("/note", webhook.note)
    client: TestClient[Request, Application]
    async with TestClient(TestServer(application)) as client:
        body = review if isinstance(review, bytes) else orjson.dumps(review)
        async with client.post(f"/{rule}", data=body, headers=JSON) as answer:
            return answer.status, await answer.json()


def created(*templates: Json) -> Json:
    return review_of(wrapper(*templates, note=JOES_NOTE))


async def refused(cluster: Cluster, review: Json) -> tuple[int, str]:
    status, answer = await ask(cluster, review)
    assert (status, answer["response"]["allowed"]) == (200, False)
    said = answer["response"]["status"]
    return said["code"], said["message"]


def counted(metrics: Metrics, result: str) -> float:
    labels = {"result": result}
    return metrics.registry.get_sample_value("muster_webhook_reviews_total", labels) or 0.0


async def test_the_creator_is_noted_and_counted() -> None:
    metrics = Metrics()
    _, answer = await ask(Cluster(), review_of(wrapper(config_map())), metrics, rule="note")
    assert answer["response"]["patchType"] == "JSONPatch"
    assert counted(metrics, "noted") == 1


async def test_what_the_user_may_create_is_let_through_and_each_right_asked_once() -> None:
    metrics, cluster = Metrics(), Cluster()
    many = [config_map(f"c-{number}") for number in range(30)]
    _, answer = await ask(cluster, created(*many, deployment()), metrics)
    assert answer["response"] == {"uid": "r", "allowed": True}
    assert sorted(each.resource for each in cluster.asked) == ["configmaps", "deployments"]
    assert counted(metrics, "untouched") == 1


async def test_every_right_that_is_lacking_is_named() -> None:
    secret = {**config_map("token"), "kind": "Secret"}
    review = created(config_map(), secret, deployment())
    code, said = await refused(Cluster("secrets", "deployments"), review)
    assert code == 403
    assert said.startswith('user "joe" cannot wrap this: ')
    assert "spec.components[1] (Secret token) needs the right to create secrets in" in said
    assert "spec.components[2] (Deployment web) needs the right to create deployments.apps" in said
    assert "configmaps" not in said


async def test_a_kind_that_muster_may_not_create_read_and_delete_is_refused() -> None:
    cluster = Cluster()
    assert (await ask(cluster, created(config_map(), deployment())))[1]["response"]["allowed"]
    asked = sorted((each.resource, each.verb) for each in cluster.asked_of_muster)
    kinds = ("configmaps", "deployments")
    assert asked == [(kind, verb) for kind in kinds for verb in ("create", "delete", "get")]

    cluster.not_granted = (("delete", "deployments"),)
    code, said = await refused(cluster, created(config_map(), deployment()))
    assert code == 403
    assert 'muster-wrapper" cannot create this: spec.components[1] (Deployment web) needs' in said
    assert "the right to delete deployments.apps in namespace demo; allowed: kinds that" in said
    assert said.endswith(f'with the label {names.WRAPPED_OBJECTS}: "true"')


@pytest.mark.parametrize(
    ("api_version", "kind", "allowed"),
    [
        ("example.com/v1", "Unheard", "a kind that the API server serves"),
        ("example.com/v1", "Wide", "a kind whose objects are in a namespace"),
        ("v1", "Question", "a kind whose objects can be created, read and deleted"),
    ],
)
async def test_kinds_that_cannot_be_wrapped_are_named(
    api_version: str, kind: str, allowed: str
) -> None:
    odd = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}}
    cluster = Cluster()
    code, said = await refused(cluster, created(config_map(), odd))
    assert code == 422
    assert f'spec.components[1] ({kind} a): "{kind} of {api_version}" is not valid' in said
    assert said.endswith(f"allowed: {allowed}")
    assert not cluster.asked


async def test_the_first_few_faults_are_named_and_the_others_counted() -> None:
    odd = [
        {"apiVersion": "example.com/v1", "kind": f"K{number}", "metadata": {"name": "a"}}
        for number in range(9)
    ]
    _, said = await refused(Cluster(), created(*odd))
    assert said.endswith("and 4 more")


async def test_not_too_many_questions_at_once() -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}
    served = Served(Resource("rbac.authorization.k8s.io", "v1", "rolebindings"), ALL)
    bindings = [
        {
            **role,
            "metadata": {"name": f"b-{number}"},
            "roleRef": {"kind": "Role", "name": f"r-{number}"},
        }
        for number in range(60)
    ]

    class WithRoles(Cluster):
        async def find(self, kind: Kind) -> Served | None:  # noqa: ARG002
            return served

    cluster = WithRoles()
    _, answer = await ask(cluster, created(*bindings))
    assert answer["response"]["allowed"]
    assert len(cluster.asked) == 61
    assert 1 < cluster.most_at_once <= REVIEWS_AT_ONCE


@pytest.mark.parametrize(
    ("cluster", "reason"), [(Silent, "no answer within 0.2 s"), (Cut, "connection refused")]
)
async def test_what_is_not_known_is_refused(cluster: Callable[[], Cluster], reason: str) -> None:
    code, said = await refused(cluster(), created(config_map()))
    assert code == 503
    assert "cannot tell whether the user may create what is wrapped" in said
    assert reason in said


@pytest.mark.parametrize("rule", ["judge", "note"])
async def test_what_is_no_review_is_a_4xx(rule: str) -> None:
    metrics = Metrics()
    status, answer = await ask(Cluster(), b"{}", metrics, rule)
    assert (status, answer["code"]) == (400, 400)
    assert counted(metrics, "refused") == 1


@pytest.mark.parametrize("field", ["object", "oldObject"])
async def test_an_edit_of_items_that_cannot_be_read_is_a_4xx(field: str) -> None:
    """A number of so many digits is JSON, and yet no number of Python's."""
    review = review_of(wrapper(config_map(), note=JOES_NOTE), wrapper(note=JOES_NOTE))
    review["request"][field]["spec"]["components"] = 7
    body = orjson.dumps(review).replace(b'"components":7', b'"components":' + b"7" * 5_000)
    metrics = Metrics()
    status, _ = await ask(Cluster(), body, metrics)
    assert status == 400
    assert counted(metrics, "failed") == 0


async def test_a_bug_is_a_500_and_no_permission() -> None:
    class Bug(Cluster):
        async def find(self, kind: Kind) -> Served | None:  # noqa: ARG002
            raise KeyError("a bug")

    metrics = Metrics()
    asked: Awaitable[tuple[int, Json]] = ask(Bug(), created(config_map()), metrics)
    status, _ = await asked
    assert status == 500
    assert counted(metrics, "failed") == 1

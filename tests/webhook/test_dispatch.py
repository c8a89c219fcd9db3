"""RayClusters of queues with clusters are managed elsewhere from their creation on."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.core import Namespace
from kube.objects.queues.queue import GangQueue
from tests.webhook.samples import Json
from tests.webhook.test_hold_app import JSON, Answer, Reads, counted, unreachable
from tests.webhook.test_holding import cluster, decided, made_by, review_of
from webhook.dispatch.app import DispatchWebhook
from webhook.holding import Leave, NamespaceRead, Queues, Read, queues_of
from webhook.metrics import Metrics
from webhook.settings import Settings

GANG = {names.OPT_IN: "true", names.QUEUE: "far"}
ANN = {"username": "ann", "groups": ["research"]}
NOTE = '{"username":"ann","groups":["research"]}'
MANAGES = {"op": "add", "path": "/spec/managedBy", "value": names.MANAGED_ELSEWHERE}
NOTES = {"op": "add", "path": "/metadata/annotations", "value": {names.CREATED_BY: NOTE}}
MANAGED = [MANAGES, NOTES]


def queue(name: str, **spec: Any) -> GangQueue:
    body = {"metadata": {"name": name}, "spec": {"namespaceSelector": {}, **spec}}
    return msgspec.convert(body, GangQueue)


FAR = queues_of([queue("far", clusters={}), queue("near")])
SELECTING = queues_of(
    [queue("far", clusters={}, namespaceSelector={"matchLabels": {"team": "ml"}}), queue("near")]
)
HOLDING = queues_of([queue("far", clusters={}, createPods="WhenAdmitted")])


def in_namespace(**labels: str) -> Answer:
    def say(wanted: Read) -> Namespace | None:
        is_place = isinstance(wanted, NamespaceRead)
        return Namespace(ObjectMeta(labels=labels)) if is_place else None

    return say


async def ask(
    created: Json,
    say: Answer | None = None,
    queues: Queues | None = FAR,
    metrics: Metrics | None = None,
    kind: str = "RayCluster",
    group: str = "ray.io",
    user: Json | None = None,
) -> Json:
    settings = Settings(lookup_deadline_seconds=0.2)
    found = DispatchWebhook(
        settings, lambda: queues, Reads(say or in_namespace()), metrics or Metrics()
    )
    application = Application()
    application.router.add_post("/dispatch", found.dispatch)
    client: TestClient[Request, Application]
    async with TestClient(TestServer(application)) as client:
        of = {"group": group, "version": "v1", "kind": kind}
        body = orjson.dumps(review_of(created, kind=of, userInfo=user or ANN))
        async with client.post("/dispatch", data=body, headers=JSON) as answer:
            response: Json = (await answer.json())["response"]
            return response


def patch_of(response: Json) -> Any:
    assert response["allowed"], response
    return orjson.loads(base64.b64decode(response["patch"])) if "patch" in response else []


async def test_a_gang_of_such_a_queue_is_managed_elsewhere() -> None:
    metrics = Metrics()
    assert patch_of(await ask(cluster(labels=GANG), metrics=metrics)) == MANAGED
    assert counted(metrics, "sent_away") == 1
    managed = cluster(labels=GANG, managedBy=names.MANAGED_ELSEWHERE)
    assert patch_of(await ask(managed)) == [NOTES]
    managed["metadata"]["annotations"] = {names.CREATED_BY: NOTE}
    assert patch_of(await ask(managed)) == []


async def test_its_creator_is_noted_over_whatever_it_says_itself() -> None:
    made = cluster(labels=GANG)
    made["metadata"]["annotations"] = {names.CREATED_BY: '{"username":"admin"}', "by": "ann"}
    _, note = patch_of(await ask(made))
    assert note["value"] == {"by": "ann", names.CREATED_BY: NOTE}
    refused = await ask(made, user={"username": "ann", "groups": ["g" * 33_000]})
    assert refused["status"]["code"] == 403


@pytest.mark.parametrize("queues", [FAR, queues_of([queue("far")])], ids=["sends", "sends-none"])
async def test_what_is_not_sent_away_has_no_note_that_could_be_believed_later(
    queues: Queues,
) -> None:
    metrics = Metrics()
    made = cluster(labels={names.QUEUE: "near"}, managedBy=names.MANAGED_ELSEWHERE)
    made["metadata"]["annotations"] = {names.CREATED_BY: '{"username":"admin"}'}
    (patch,) = patch_of(await ask(made, queues=queues, metrics=metrics))
    assert patch == {"op": "remove", "path": "/metadata/annotations/muster.dev~1created-by"}
    assert counted(metrics, "untouched") == 1


@pytest.mark.parametrize("kind", ["RayJob", "RayService"])
async def test_so_are_other_kinds(kind: str) -> None:
    assert patch_of(await ask(cluster(labels=GANG), kind=kind)) == MANAGED
    cron = {"apiVersion": "ray.io/v1", "kind": "RayCronJob", "name": "c", "uid": "u"}
    made = cluster(labels=GANG, owner={**cron, "controller": True})
    assert patch_of(await ask(made, kind=kind)) == []
    assert patch_of(await ask(cluster(labels=GANG), kind="RayCronJob")) == []


def wrapper(labels: dict[str, str] | None = None, **spec: Any) -> Json:
    """An AppWrapper that is created, which is a gang whether it says so or not."""
    made = cluster(labels=labels if labels is not None else {names.QUEUE: "far"})
    made["spec"] = {"components": [], **spec}
    return made


@pytest.mark.parametrize("group", [names.CODEFLARE_GROUP, names.MCAD_GROUP])
async def test_on_an_appwrapper_it_is_noted_and_managed_by_stays(group: str) -> None:
    how: Json = {"kind": "AppWrapper", "group": group}
    noted = {names.DISPATCHED: "true"}
    path = "/metadata/annotations"
    assert patch_of(await ask(wrapper(), **how)) == [{"op": "add", "path": path, "value": noted}]
    made = wrapper(managedBy=names.MANAGED_BY)
    made["metadata"]["annotations"] = {"by": "ann"}
    (patch,) = patch_of(await ask(made, **how))
    assert patch["value"] == {"by": "ann", **noted}
    made["metadata"]["annotations"] = noted
    assert patch_of(await ask(made, **how)) == []
    others = wrapper({names.QUEUE: "near"}), wrapper(managedBy="example.com/theirs")
    assert [patch_of(await ask(each, **how)) for each in others] == [[], []]
    refused = await ask(wrapper({names.QUEUE: "far", names.KUEUE_QUEUE: "theirs"}), **how)
    assert "hands the AppWrapper" in refused["status"]["message"]


async def test_a_kind_of_another_group_is_no_concern_of_ours() -> None:
    assert patch_of(await ask(wrapper(), kind="AppWrapper", group="example.com")) == []


@pytest.mark.parametrize(
    "created",
    [
        cluster(labels={names.OPT_IN: "true", names.QUEUE: "near"}),
        cluster(labels={names.OPT_IN: "true", names.QUEUE: "none-such"}),
        cluster(labels={names.QUEUE: "far"}),
        cluster(labels=GANG, owner=made_by("RayJob")),
    ],
    ids=["of-another-queue", "of-no-queue", "no-gang", "made-by-a-controller"],
)
async def test_others_stay_as_they_are(created: Json) -> None:
    assert patch_of(await ask(created)) == []


async def test_its_namespace_may_have_made_it_a_gang_of_the_queue() -> None:
    only = queues_of(
        [queue("far", clusters={}, namespaceSelector={"matchLabels": {"team": "research"}})]
    )
    labels = {names.OPT_IN: "true", "team": "research"}
    assert patch_of(await ask(cluster(labels={}), in_namespace(**labels), only)) == MANAGED
    assert patch_of(await ask(cluster(labels={}), in_namespace(team="other"), only)) == []


@pytest.mark.parametrize(
    ("created", "said"),
    [
        (cluster(labels={**GANG, names.KUEUE_QUEUE: "theirs"}), "hands the RayCluster to Kueue"),
        (cluster(labels=GANG, managedBy="ray.io/kuberay-operator"), "spec.managedBy"),
        (cluster(labels=GANG, clusterSelector={"ray.io/cluster": "b"}), "spec.clusterSelector"),
    ],
    ids=["kueue", "to-run-here", "on-a-cluster-that-is-there"],
)
async def test_what_cannot_be_sent_is_refused(created: Json, said: str) -> None:
    response = await ask(created)
    assert not response["allowed"]
    assert response["status"]["code"] == 422
    assert said in response["status"]["message"]


async def test_what_is_not_known_is_refused() -> None:
    for queues, say in ((None, None), (SELECTING, unreachable)):
        response = await ask(cluster(labels=GANG), say, queues)
        assert not response["allowed"]
        assert response["status"]["code"] == 503


async def test_a_namespace_is_not_read_for_what_says_all_itself_in_a_queue_of_all() -> None:
    said = ask(cluster(labels=GANG), unreachable)
    assert patch_of(await said) == MANAGED
    for labels in ({names.QUEUE: "far"}, {names.OPT_IN: "true"}):
        response = await ask(cluster(labels=labels), unreachable)
        assert not response["allowed"], labels


async def test_where_no_queue_has_clusters_nothing_is_read() -> None:
    none = queues_of([queue("far")])
    assert patch_of(await ask(cluster(labels=GANG), unreachable, none)) == []


def test_what_is_sent_away_is_not_held() -> None:
    """Suspended, it would be suspended where it runs."""
    assert isinstance(decided(review_of(cluster(labels=GANG)), HOLDING), Leave)
    assert isinstance(decided(review_of(cluster(labels=GANG)), FAR, lacks_quota=True), Leave)

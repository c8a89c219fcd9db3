"""What is written to the API server, and what a refusal of it means."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from headstate.metrics import Metrics
from headstate.shell.cluster import Cluster
from headstate.shell.keys import make_keys, read_keys
from kube.api.client import Client
from kube.api.errors import Conflict, Forbidden, KubeError, NotFound
from testbed.heads import head, uid_of

SECRETS = "/api/v1/namespaces/team/secrets"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/muster-system/endpointslices"


class FakeClient:
    """Keeps what is created, by path."""

    def __init__(self, *there: str) -> None:
        self.objects: dict[str, Any] = {path: {} for path in there}
        self.calls: list[tuple[str, str]] = []
        self.refuses: KubeError | None = None

    async def create(self, path: str, obj: Any, **_: Any) -> bytes:
        at = f"{path}/{obj['metadata']['name']}"
        self._called("create", at)
        if at in self.objects:
            raise Conflict(409, "AlreadyExists")
        self.objects[at] = obj
        return b"{}"

    async def merge_patch(self, path: str, changes: Any, **_: Any) -> Any:
        self._called("patch", path)
        if path not in self.objects:
            raise NotFound(404, "NotFound")
        self.objects[path] = changes
        return b"{}"

    async def delete(self, path: str, **_: Any) -> bytes:
        self._called("delete", path)
        if self.objects.pop(path, None) is None:
            raise NotFound(404, "NotFound")
        return b"{}"

    def _called(self, what: str, path: str) -> None:
        self.calls.append((what, path))
        if self.refuses is not None:
            raise self.refuses


def cluster_of(client: FakeClient, *, leads: bool = True) -> tuple[Cluster, Metrics]:
    metrics = Metrics()
    return Cluster(cast(Client, client), "muster-system", "me", metrics, lambda: leads), metrics


def counted(metrics: Metrics, what: str, outcome: str) -> float | None:
    labels = {"what": what, "outcome": outcome}
    return metrics.registry.get_sample_value("muster_redis_writes_total", labels)


async def test_a_secret_goes_with_its_raycluster_and_has_its_user() -> None:
    client = FakeClient()
    cluster, metrics = cluster_of(client)
    assert await cluster.write_secret(head(1), "pass", replaced=False) == "made"
    (found,) = client.objects.values()
    assert found["type"] == "Opaque"
    assert found["stringData"] == {"username": f"ray-{uid_of(1)}", "password": "pass"}
    (owner,) = found["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "name": "c1",
        "uid": uid_of(1),
    }
    assert counted(metrics, "secret", "done") == 1


async def test_one_that_is_there_is_left_or_replaced_as_asked() -> None:
    path = f"{SECRETS}/muster-redis-user-1"
    client = FakeClient(path)
    cluster, _ = cluster_of(client)
    assert await cluster.write_secret(head(1), "pass", replaced=False) == "found"
    assert client.objects[path] == {}
    assert await cluster.write_secret(head(1), "pass", replaced=True) == "made"
    assert client.objects[path]["stringData"]["password"] == "pass"


async def test_what_is_refused_is_counted_and_said_to_have_failed() -> None:
    client = FakeClient()
    client.refuses = Forbidden(403, "Forbidden", "the namespace is being terminated")
    cluster, metrics = cluster_of(client)
    assert await cluster.write_secret(head(1), "pass", replaced=False) == "failed"
    assert counted(metrics, "secret", "failed") == 1
    await cluster.tell(head(1), "RedisUserReady", "text", warning=False)
    assert counted(metrics, "event", "failed") == 1
    assert not await cluster.point_to("10.0.0.1", 6379)


async def test_one_that_leads_no_more_writes_nothing() -> None:
    client = FakeClient()
    cluster, _ = cluster_of(client, leads=False)
    assert await cluster.write_secret(head(1), "pass", replaced=True) == "failed"
    await cluster.tell(head(1), "RedisUserReady", "text", warning=False)
    await cluster.publish({})
    assert not await cluster.point_to("10.0.0.1", 6379)
    assert client.calls == []


@pytest.mark.parametrize(("address", "family"), [("10.0.0.1", "IPv4"), ("fd00::1", "IPv6")])
async def test_the_primary_is_the_one_endpoint_of_the_service(address: str, family: str) -> None:
    client = FakeClient()
    cluster, _ = cluster_of(client)
    assert await cluster.point_to(address, 6379)
    assert await cluster.point_to(address, 6379)
    (found,) = client.objects.values()
    assert found["addressType"] == family
    assert found["endpoints"] == [{"addresses": [address], "conditions": {"ready": True}}]
    assert found["ports"] == [{"name": "redis", "port": 6379, "protocol": "TCP"}]
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "muster-redis"
    path = f"{SLICES}/muster-redis-primary"
    assert client.calls == [("patch", path), ("create", path), ("patch", path)]


async def test_a_name_without_an_address_is_none() -> None:
    cluster, _ = cluster_of(FakeClient())
    assert await cluster.address_of("127.0.0.1:6379") == "127.0.0.1"
    assert await cluster.address_of("no.such.name.invalid:6379") is None


async def test_the_report_is_a_config_map() -> None:
    client = FakeClient()
    cluster, _ = cluster_of(client)
    await cluster.publish({"primary": "a"})
    (found,) = client.objects.values()
    assert json.loads(found["data"]["report.json"]) == {"primary": "a"}


async def test_keys_are_made_once_each_of_its_own(tmp_path: Any) -> None:
    client = FakeClient()
    await make_keys(cast(Client, client), "muster-system")
    made = {path: dict(found["stringData"]) for path, found in client.objects.items()}
    await make_keys(cast(Client, client), "muster-system")
    assert {path: found["stringData"] for path, found in client.objects.items()} == made
    for data in made.values():
        for name, text in data.items():
            (tmp_path / name).write_text(text)
    keys = read_keys(tmp_path)
    assert keys.users[0].decode() != keys.administrators[0]
    assert not keys.rotating

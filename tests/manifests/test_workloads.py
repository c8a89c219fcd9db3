"""Every Deployment of the manifests, whatever folder it is in, runs as safely as all others."""

import re
from typing import Any

import pytest
import yaml

from tests.manifests.base import MANIFESTS, Json, documents

SERVERS = {
    *("muster-webhook", "muster-coordinator", "muster-extender", "muster-wrapper"),
    "muster-redis",
    "muster-dispatcher",
}
"""What runs in replicas, is called or elects a leader, and must not be evicted for others."""
CRITICAL = SERVERS | {"muster-scheduler"}
UNHURRIED = {"muster-forecaster"}
"""Nothing waits for it, so it is alone, and may be evicted."""
UNPROBED = {"muster-dashboard"}
"""It has no port for its health: a file of the page says that it is ready."""


def objects(kind: str) -> dict[str, Json]:
    """The objects of a kind by name; patches are in files of their own."""
    found: dict[str, Json] = {}
    for path in sorted(MANIFESTS.rglob("*.yaml")):
        if path.name in ("settings.yaml", "kustomization.yaml", "scheduler.yaml"):
            continue
        for each in documents(path):
            if isinstance(each, dict) and each.get("kind") == kind:
                assert each["metadata"]["name"] not in found, path
                found[each["metadata"]["name"]] = each
    return found


DEPLOYMENTS = objects("Deployment")
BUDGETS = objects("PodDisruptionBudget")


def pod(name: str) -> Json:
    found: Json = DEPLOYMENTS[name]["spec"]["template"]["spec"]
    return found


def containers(name: str) -> list[Json]:
    found: list[Json] = pod(name)["containers"]
    return found


def test_all_are_found() -> None:
    assert CRITICAL | UNHURRIED | UNPROBED | {"muster-certs", "muster-extender-certs"} == {
        *DEPLOYMENTS
    }


@pytest.mark.parametrize("name", sorted(DEPLOYMENTS))
def test_a_pod_can_do_nothing_to_its_host(name: str) -> None:
    context = pod(name)["securityContext"]
    assert context["runAsNonRoot"] is True
    assert (context["runAsUser"], context["runAsGroup"]) == (65532, 65532)
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod(name).keys()
    for container in containers(name):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@pytest.mark.parametrize("name", sorted(DEPLOYMENTS))
def test_no_service_puts_variables_into_a_pod(name: str) -> None:
    """A Service called muster-webhook-... would give the webhook MUSTER_WEBHOOK_..._PORT."""
    assert pod(name)["enableServiceLinks"] is False


@pytest.mark.parametrize("name", sorted(DEPLOYMENTS))
def test_a_container_says_what_it_needs(name: str) -> None:
    for container in containers(name):
        resources = container["resources"]
        assert {*resources["requests"]} == {"cpu", "memory"}
        assert {*resources["limits"]} == {"memory"}  # a limit of cpu would throttle


@pytest.mark.parametrize("name", sorted(DEPLOYMENTS))
def test_what_pods_wait_for_is_critical(name: str) -> None:
    expected = "system-cluster-critical" if name in CRITICAL else None
    if not name.endswith("certs"):
        assert pod(name).get("priorityClassName") == expected


@pytest.mark.parametrize("name", sorted(CRITICAL | UNHURRIED))
def test_servers_are_probed(name: str) -> None:
    for container in containers(name):
        if container["name"] == "scheduler":
            continue  # its own, below
        probes = {kind: container[f"{kind}Probe"] for kind in ("liveness", "readiness")}
        assert {kind: each["httpGet"] for kind, each in probes.items()} == {
            "liveness": {"path": "/livez", "port": "health"},
            "readiness": {"path": "/readyz", "port": "health"},
        }
        # A busy program that answers late must not be killed.
        assert probes["liveness"]["timeoutSeconds"] == 5


def test_the_scheduler_is_probed_where_it_answers() -> None:
    (found,) = [each for each in containers("muster-scheduler") if each["name"] == "scheduler"]
    (port,) = found["ports"]
    assert (port["name"], port["containerPort"]) == ("https", 10259)
    for kind, path in (("liveness", "/livez"), ("readiness", "/readyz")):
        wanted = {"path": path, "port": "https", "scheme": "HTTPS"}
        assert found[f"{kind}Probe"]["httpGet"] == wanted


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_replicas_are_spread_over_nodes_and_zones(name: str) -> None:
    labels = DEPLOYMENTS[name]["spec"]["template"]["metadata"]["labels"]
    spread = pod(name)["topologySpreadConstraints"]
    assert [each["topologyKey"] for each in spread] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]
    for each in spread:
        # On a cluster of one node both must run.
        assert (each["maxSkew"], each["whenUnsatisfiable"]) == (1, "ScheduleAnyway")
        assert each["labelSelector"] == {"matchLabels": labels}


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_one_replica_stays_when_nodes_are_drained(name: str) -> None:
    budget = BUDGETS[name]["spec"]
    assert DEPLOYMENTS[name]["spec"]["replicas"] == 2
    assert budget["minAvailable"] == 1
    assert budget["selector"] == DEPLOYMENTS[name]["spec"]["selector"]
    # A replica that does not run must not keep a node from being drained.
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_every_budget_is_for_replicas() -> None:
    # The servers of Redis are judged in test_redis.py.
    assert BUDGETS.keys() == SERVERS | {"muster-redis-server"}


# ---- the component ha


def ha(name: str) -> list[Json]:
    found: list[Json] = yaml.safe_load((MANIFESTS / "ha" / name).read_text(encoding="utf-8"))
    return found


def test_ha_changes_every_server_and_nothing_else() -> None:
    (found,) = documents(MANIFESTS / "ha" / "kustomization.yaml")
    for patch in found["patches"]:
        selected = re.compile(patch["target"]["name"])
        assert {name for name in DEPLOYMENTS if selected.fullmatch(name)} == SERVERS
    kinds = {patch["path"]: patch["target"]["kind"] for patch in found["patches"]}
    assert kinds == {"replicas.yaml": "Deployment", "budget.yaml": "PodDisruptionBudget"}


@pytest.mark.parametrize("name", sorted(SERVERS))
def test_ha_names_what_is_there(name: str) -> None:
    """A JSON patch that replaces what is missing would not build."""
    for each in ha("replicas.yaml"):
        found: Any = DEPLOYMENTS[name]
        *path, last = each["path"].strip("/").split("/")
        for key in path:
            found = found[int(key)] if isinstance(found, list) else found[key]
        assert each["op"] == "add" or last in found
        if each["op"] == "test":
            assert found[last] == each["value"]
    assert {op["path"]: op["op"] for op in ha("budget.yaml")} == {
        "/spec/minAvailable": "remove",
        "/spec/maxUnavailable": "add",
    }

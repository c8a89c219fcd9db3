"""The component for Redis: rights, how its servers start, and what the webhook is asked about."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from headstate.options import FIELD, SECRET_PREFIX
from headstate.settings import PREFIX, Settings
from headstate.shell.keys import SECRET_OF
from kube.objects import names
from tests.manifests.base import BASE, MANIFESTS, Json, documents
from tests.manifests.test_rights import Rights
from webhook.settings import Settings as WebhookSettings

HERE = MANIFESTS / "redis"
PATCHES = ("settings.yaml", "webhook-entry.yaml")
OBJECTS = [
    each
    for path in sorted(HERE.glob("*.yaml"))
    if path.name not in (*PATCHES, "kustomization.yaml")
    for each in documents(path)
]
USED: Rights = {
    # headstate/shell/app.py, cluster.py, keys.py
    ("ray.io", "rayclusters"): {"list", "watch"},
    ("", "secrets"): {"create", "delete"},
    ("", "events"): {"create", "patch"},
    ("coordination.k8s.io", "leases"): {"create", "get", "patch"},
    ("discovery.k8s.io", "endpointslices"): {"create", "patch"},
    ("", "configmaps"): {"create", "patch"},
}


def one(kind: str, name: str) -> Json:
    (found,) = [o for o in OBJECTS if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    return found


def entry() -> Json:
    (step,) = yaml.safe_load((HERE / "webhook-entry.yaml").read_text(encoding="utf-8"))
    assert (step["op"], step["path"]) == ("add", "/webhooks/-")
    found: Json = step["value"]
    return found


def servers() -> Json:
    found: Json = one("StatefulSet", "muster-redis-server")["spec"]
    return found


def containers() -> dict[str, Json]:
    return {each["name"]: each for each in servers()["template"]["spec"]["containers"]}


def variables(container: Json) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container["env"]}


def test_the_component_names_every_file() -> None:
    (found,) = documents(HERE / "kustomization.yaml")
    files = {path.name for path in HERE.glob("*.yaml")} - {*PATCHES, "kustomization.yaml"}
    assert found["kind"] == "Component"
    assert {*found["resources"]} == files
    assert {each["path"] for each in found["patches"]} == {*PATCHES}


# ---- the webhook


def test_the_webhook_is_asked_about_labelled_objects_and_never_about_what_ends() -> None:
    found = entry()
    (rule,) = found["rules"]
    assert rule["resources"] == ["rayclusters", "rayjobs", "rayservices"]
    assert rule["operations"] == ["CREATE", "UPDATE"]
    selector = {"key": names.HEAD_FAULT_TOLERANCE, "operator": "Exists"}
    assert found["objectSelector"] == {"matchExpressions": [selector]}
    assert (found["failurePolicy"], found["reinvocationPolicy"]) == ("Fail", "Never")
    lives, changed = (each["expression"] for each in found["matchConditions"])
    assert "!has(oldObject.metadata.deletionTimestamp)" in lives
    for field in (FIELD, "headGroupSpec", "rayVersion", "rayClusterSpec", "rayClusterConfig"):
        assert f"'{field}'" in changed
    (base,) = documents(BASE / "webhook-configuration.yaml")
    gate, hold = base["webhooks"]
    assert found["namespaceSelector"] == hold["namespaceSelector"]
    service = {**gate["clientConfig"]["service"], "path": "/protect-head"}
    assert found["clientConfig"] == {"service": service}


def test_webhook_and_program_are_told_one_address() -> None:
    (patch,) = documents(HERE / "settings.yaml")
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    namespace, address = container["env"]
    told = address["value"].replace(f"$({namespace['name']})", names.DEFAULT_NAMESPACE)
    assert address["name"] == "MUSTER_WEBHOOK_REDIS_ADDRESS"
    assert WebhookSettings(redis_address=told).redis_address == Settings().url
    pod = one("Deployment", "muster-redis")["spec"]["template"]["spec"]
    own = variables(pod["containers"][0])[f"{PREFIX}ADDRESS"]
    assert own.replace(f"$({PREFIX}NAMESPACE)", names.DEFAULT_NAMESPACE) == Settings().address
    assert Settings().address.startswith("muster-redis.muster-system.svc:")
    ports = {each["port"] for each in one("Service", "muster-redis")["spec"]["ports"]}
    assert ports == {int(Settings().address.rpartition(":")[2])}
    assert "selector" not in one("Service", "muster-redis")["spec"]


# ---- the program


def test_the_program_may_do_what_it_does_and_nothing_else() -> None:
    found: Rights = {}
    for kind in ("ClusterRole", "Role"):
        for rule in one(kind, "muster-redis")["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    found.setdefault((group, resource), set()).update(rule["verbs"])
    assert found == USED
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert one(kind, "muster-redis")["subjects"] == [
            {"kind": "ServiceAccount", "name": "muster-redis", "namespace": "muster-system"}
        ]


def test_the_servers_get_passwords_and_no_key_of_users() -> None:
    (keys,) = [each for each in servers()["template"]["spec"]["volumes"] if each["name"] == "keys"]
    assert keys["secret"] == {"secretName": SECRET_OF["password"]}
    pod = one("Deployment", "muster-redis")["spec"]["template"]["spec"]
    (mounted,) = pod["volumes"]
    sources = [each["secret"] for each in mounted["projected"]["sources"]]
    assert sources == [{"name": name, "optional": True} for name in SECRET_OF.values()]
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert mount["mountPath"] == str(Settings().key_directory)


def test_the_policies_know_the_names_of_secrets() -> None:
    text = (HERE / "redis-policy.yaml").read_text(encoding="utf-8")
    others = (HERE / "policies.yaml").read_text(encoding="utf-8")
    assert f"startsWith('{SECRET_PREFIX}')" in text
    assert f"startsWith('{SECRET_PREFIX}')" in others
    for name in SECRET_OF.values():
        assert f"'{name}'" in text


# ---- the servers


def test_a_server_can_do_nothing_to_its_host_and_says_what_it_needs() -> None:
    pod = servers()["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["priorityClassName"] == "system-cluster-critical"
    for container in containers().values():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {*container["resources"]["limits"]} == {"memory"}
        assert re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+(-\w+)?", container["image"])


def test_the_memory_of_a_server_leaves_room_for_a_log_that_is_written_anew() -> None:
    valkey = containers()["valkey"]
    assert variables(valkey)["MAXMEMORY"] == "1gb"
    assert valkey["resources"]["limits"]["memory"] == "2Gi"


def test_servers_announce_the_names_that_all_know() -> None:
    for name, port in (("valkey", 6379), ("sentinel", 26379)):
        found = variables(containers()[name])
        assert found["HOST"] == "$(POD_NAME).muster-redis-servers"
        assert found["PORT"] == str(port)
        assert found["SERVERS"].split() == [*Settings().servers]
        assert found["SENTINELS"].split() == [*Settings().sentinels]
    assert servers()["serviceName"] == "muster-redis-servers"
    headless = one("Service", "muster-redis-servers")["spec"]
    assert (headless["clusterIP"], headless["publishNotReadyAddresses"]) == ("None", True)
    assert headless["selector"] == servers()["selector"]["matchLabels"]


def test_one_server_is_away_at_a_time_and_they_are_spread() -> None:
    budget = one("PodDisruptionBudget", "muster-redis-server")["spec"]
    assert (servers()["replicas"], budget["minAvailable"]) == (3, 2)
    assert budget["selector"] == servers()["selector"]
    spread = servers()["template"]["spec"]["topologySpreadConstraints"]
    assert [each["topologyKey"] for each in spread] == [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
    ]


def test_heads_clean_up_jobs_and_the_program_reach_the_servers() -> None:
    found = one("NetworkPolicy", "muster-redis-server")["spec"]
    assert found["podSelector"]["matchLabels"] == servers()["selector"]["matchLabels"]
    tenants, own = found["ingress"]
    (peer,) = tenants["from"]
    assert peer["namespaceSelector"] == {}
    (selected,) = peer["podSelector"]["matchExpressions"]
    assert (selected["key"], selected["values"]) == (
        names.RAY_NODE_TYPE,
        ["head", names.RAY_REDIS_CLEANUP],
    )
    assert [each["port"] for each in tenants["ports"]] == [6379]
    assert [each["port"] for each in own["ports"]] == [6379, 26379]


@pytest.mark.parametrize("name", ["common.sh", "ping.sh", "server.sh", "sentinel.sh"])
def test_scripts_are_read_by_a_plain_shell(name: str) -> None:
    text: Any = one("ConfigMap", "muster-redis-scripts")["data"][name]
    assert "[[" not in text
    assert "set -o pipefail" not in text
    assert name == "common.sh" or text.startswith('. "${0%/*}/common.sh"')

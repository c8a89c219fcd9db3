"""The manifests of the extender and the scheduler say what the programs expect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.__main__ import into_a_secret
from extender.settings import PREFIX, Settings
from extender.wake import WAKE_NAME
from kube.devices.device_facts import DEVICE_WATCHES
from kube.objects import names
from tests.manifests.base import documents

Json = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "manifests"
EXTENDER = MANIFESTS / "extender"
SCHEDULER = MANIFESTS / "scheduler"


OBJECTS = [each for name in ("rbac", "extender") for each in documents(EXTENDER / f"{name}.yaml")]
CERTS = documents(EXTENDER / "certs.yaml")
SECOND = documents(SCHEDULER / "second-scheduler.yaml")


def one(kind: str, objects: list[Json] = OBJECTS) -> Json:
    (found,) = [each for each in objects if each["kind"] == kind]
    return found


def container(deployment: Json, name: str = "extender") -> Json:
    containers = deployment["spec"]["template"]["spec"]["containers"]
    (found,) = [each for each in containers if each["name"] == name]
    assert isinstance(found, dict)
    return found


def configurations() -> list[Json]:
    alone = [documents(SCHEDULER / f"{n}.yaml")[0] for n in ("configuration", "managed-resources")]
    return [*alone, yaml.safe_load(one("ConfigMap", SECOND)["data"]["configuration.yaml"])]


def test_kustomization_names_every_file() -> None:
    (found,) = documents(EXTENDER / "kustomization.yaml")
    files = {path.name for path in EXTENDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert {*found["resources"]} == files


def test_it_may_read_what_it_watches_and_write_one_object() -> None:
    granted = {
        (group, resource): (set(rule["verbs"]), rule.get("resourceNames"))
        for role in OBJECTS
        if role["kind"] in ("Role", "ClusterRole")
        for rule in role["rules"]
        if rule["verbs"] != ["create"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    watched = ({"list", "watch"}, None)
    assert granted == {
        ("", "pods"): watched,
        ("", "nodes"): watched,
        (names.GROUP, "gangs"): watched,
        **{(each.resource.group, each.resource.plural): watched for each in DEVICE_WATCHES},
        ("storage.k8s.io", "csistoragecapacities"): ({"patch"}, [WAKE_NAME]),
    }
    created = [rule for rule in one("Role")["rules"] if rule["verbs"] == ["create"]]
    assert [rule["resources"] for rule in created] == [["csistoragecapacities"]]


def test_the_certificates_are_made_for_these_very_objects() -> None:
    default = {option.name: option.default for option in into_a_secret.params}
    program, command, *arguments = container(one("Deployment", CERTS), "certs")["args"]
    assert (program, command) == ("certs", into_a_secret.name)
    assert arguments == ["--ip", "127.0.0.1", "--every", "60", "--health-port", "8081"]
    assert default["namespace"] == names.DEFAULT_NAMESPACE
    assert default["service"] == one("Service")["metadata"]["name"]
    assert default["client"] == Settings().client_name
    named = {
        rule["resources"][0]: (rule["resourceNames"], rule["verbs"])
        for rule in one("Role", CERTS)["rules"]
        if "resourceNames" in rule
    }
    assert named == {
        "secrets": ([default["secret"]], ["get", "patch"]),
        "leases": ([default["lease"]], ["get", "patch"]),
    }
    for deployment in (one("Deployment"), one("Deployment", SECOND)):
        volumes = deployment["spec"]["template"]["spec"]["volumes"]
        secrets = {each["secret"]["secretName"] for each in volumes if "secret" in each}
        assert secrets == {default["secret"]}


@pytest.mark.parametrize(
    ("deployment", "name", "files"),
    [
        (one("Deployment"), "extender", {"ca.crt", "tls.crt", "tls.key"}),
        (one("Deployment", SECOND), "extender", {"ca.crt", "tls.crt", "tls.key"}),
        (one("Deployment", SECOND), "scheduler", {"ca.crt", "client.crt", "client.key"}),
    ],
)
def test_each_container_finds_its_own_key_only(
    deployment: Json, name: str, files: set[str]
) -> None:
    volumes = {each["name"]: each for each in deployment["spec"]["template"]["spec"]["volumes"]}
    mounts = container(deployment, name)["volumeMounts"]
    (mount,) = [each for each in mounts if "secret" in volumes[each["name"]]]
    items = volumes[mount["name"]]["secret"]["items"]
    assert {each["path"] for each in items} == {each["key"] for each in items} == files
    named = [Path(each) for each in _tls_files(deployment, name)]
    assert {each.name for each in named} == files
    assert {str(each.parent) for each in named} == {mount["mountPath"]}


def _tls_files(deployment: Json, name: str) -> list[str]:
    """The files that the program will look for."""
    if name == "extender":
        found = Settings()
        return [
            str(each) for each in (found.certificate_file, found.key_file, found.client_ca_file)
        ]
    tls = configurations()[-1]["extenders"][0]["tlsConfig"]
    return [tls[each] for each in ("caFile", "certFile", "keyFile")]


def test_the_account_that_makes_certificates_may_do_nothing_else() -> None:
    granted = {
        (resource, verb)
        for rule in one("Role", CERTS)["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    verbs = ("create", "get", "patch")
    assert granted == {(kind, verb) for kind in ("secrets", "leases") for verb in verbs}
    account = one("ServiceAccount", CERTS)["metadata"]["name"]
    assert one("Deployment", CERTS)["spec"]["template"]["spec"]["serviceAccountName"] == account
    assert [each["name"] for each in one("RoleBinding", CERTS)["subjects"]] == [account]
    assert {each["kind"] for each in CERTS} == {
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "Deployment",
    }


def test_the_second_scheduler_has_an_account_of_its_own() -> None:
    account = one("ServiceAccount", SECOND)["metadata"]["name"]
    assert account != one("ServiceAccount")["metadata"]["name"]
    assert one("Deployment", SECOND)["spec"]["template"]["spec"]["serviceAccountName"] == account
    bindings = [each for each in SECOND if each["kind"].endswith("Binding")]
    assert {each["name"] for binding in bindings for each in binding["subjects"]} == {account}
    assert {binding["roleRef"]["name"] for binding in bindings} == {
        "system:kube-scheduler",
        "system:volume-scheduler",
        "extension-apiserver-authentication-reader",
        "muster-scheduler",
        "muster-extender",
    }
    kinds = [
        binding["kind"] for binding in bindings if binding["roleRef"]["name"] == "muster-extender"
    ]
    assert sorted(kinds) == ["ClusterRoleBinding", "RoleBinding"]


@pytest.mark.parametrize("deployment", [one("Deployment"), one("Deployment", SECOND)])
def test_settings_exist_and_are_taken(deployment: Json) -> None:
    given: Json = {}
    for variable in container(deployment)["env"]:
        name = variable["name"].removeprefix(PREFIX)
        assert name != variable["name"]
        given[name.lower()] = variable.get("value", "filled-in")
    Settings(**given)
    assert {*given} <= {*Settings.model_fields}


@pytest.mark.parametrize(
    "deployment", [one("Deployment"), one("Deployment", SECOND), one("Deployment", CERTS)]
)
def test_it_can_do_nothing_to_its_host(deployment: Json) -> None:
    for each in deployment["spec"]["template"]["spec"]["containers"]:
        assert each["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    context = deployment["spec"]["template"]["spec"]["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    mounted = deployment["spec"]["template"]["spec"].get("volumes")
    assert bool(context.get("fsGroup")) == bool(mounted)  # else only root can read the key


def test_ports_and_files_are_those_of_the_settings() -> None:
    settings = Settings()
    ports = {each["name"]: each["containerPort"] for each in container(one("Deployment"))["ports"]}
    assert ports == {"https": settings.listen_port, "health": settings.health_port}
    (mount,) = container(one("Deployment"))["volumeMounts"]
    files = (settings.certificate_file, settings.key_file, settings.client_ca_file)
    assert {path.parent for path in files} == {Path(mount["mountPath"])}
    (port,) = one("Service")["spec"]["ports"]
    assert port["port"] == settings.listen_port
    assert one("Service")["spec"]["sessionAffinity"] == "ClientIP"


@pytest.mark.parametrize("found", configurations())
def test_the_scheduler_asks_as_it_should(found: Json) -> None:
    (entry,) = found["extenders"]
    assert {entry["filterVerb"], entry["prioritizeVerb"], entry["preemptVerb"]} == {
        "filter",
        "prioritize",
        "preempt",
    }
    assert entry["nodeCacheCapable"] is True
    assert entry["enableHTTPS"] is True
    assert entry["ignorable"] is False
    assert entry["weight"] * 10 > 500
    assert {"caFile", "certFile", "keyFile"} <= entry["tlsConfig"].keys()
    # The extender must have given up before the scheduler does.
    assert float(entry["httpTimeout"].removesuffix("s")) > Settings().call_seconds
    assert entry["urlPrefix"].endswith(f":{Settings().listen_port}")
    assert found["percentageOfNodesToScore"] == 100


def test_only_gpus_are_managed_in_one_variant() -> None:
    managed = [found["extenders"][0].get("managedResources") for found in configurations()]
    assert managed == [None, [{"name": "nvidia.com/gpu"}], None]

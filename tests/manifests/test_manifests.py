"""The base fits the programs: names, places, ports, settings, the webhook."""

from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from certs.__main__ import into_the_cluster
from coordinator.gang.nominations import Guard
from coordinator.settings import Settings as CoordinatorSettings
from kube.objects import names
from tests.manifests.base import BASE, MANIFESTS, OBJECTS, PROGRAMS, Json, documents, one
from webhook.settings import Settings as WebhookSettings


def workload(program: str) -> Json:
    return one("Deployment", f"muster-{program}")


def pod_of(program: str) -> Json:
    found: Json = workload(program)["spec"]["template"]["spec"]
    return found


def container_of(program: str) -> Json:
    (found,) = pod_of(program)["containers"]
    assert isinstance(found, dict)
    return found


# ---- the whole


def test_kustomizations_name_every_file() -> None:
    (base,) = documents(BASE / "kustomization.yaml")
    files = {path.name for path in BASE.glob("*.yaml")} - {"kustomization.yaml"}
    assert {*base["resources"]} == {*files, "../crds"}
    (crds,) = documents(MANIFESTS / "crds" / "Kustomization")
    assert {*crds["resources"]} == {path.name for path in (MANIFESTS / "crds").glob("*.yaml")}
    assert base["namespace"] == names.DEFAULT_NAMESPACE


API_VERSIONS = {
    "Namespace": "v1",
    "Service": "v1",
    "ServiceAccount": "v1",
    "Deployment": "apps/v1",
    "PodDisruptionBudget": "policy/v1",
    "Role": "rbac.authorization.k8s.io/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
    "ClusterRole": "rbac.authorization.k8s.io/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
    "MutatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1",
    "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1",
}
CLUSTER_SCOPED = {
    "Namespace", "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}  # fmt: skip


@pytest.mark.parametrize("found", OBJECTS, ids=lambda o: f"{o['kind']}-{o['metadata']['name']}")
def test_every_object_has_its_version_and_place(found: Json) -> None:
    assert found["apiVersion"] == API_VERSIONS[found["kind"]]
    namespace = None if found["kind"] in CLUSTER_SCOPED else names.DEFAULT_NAMESPACE
    assert found["metadata"].get("namespace") == namespace


def test_names_are_not_used_twice() -> None:
    keys = [(found["kind"], found["metadata"]["name"]) for found in OBJECTS]
    assert len(keys) == len({*keys})


def test_namespace() -> None:
    found = one("Namespace", names.DEFAULT_NAMESPACE)
    assert found["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "restricted"}


# ---- what calls the webhook


def gate() -> Json:
    return webhook_of("gate.muster.dev")


def webhook_of(name: str) -> Json:
    every = one("MutatingWebhookConfiguration", "muster-webhook")["webhooks"]
    (found,) = (each for each in every if each["name"] == name)
    assert isinstance(found, dict)
    return found


def test_only_rayclusters_being_created_are_held_and_a_missing_answer_holds_none() -> None:
    found = webhook_of("hold.muster.dev")
    assert found["rules"] == [
        {
            "apiGroups": ["ray.io"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["rayclusters"],
            "scope": "Namespaced",
        }
    ]
    assert (found["failurePolicy"], found["matchPolicy"]) == ("Ignore", "Equivalent")
    assert found["reinvocationPolicy"] == "Never"  # it would take its own note for a copied one
    assert found["sideEffects"] == "None"
    assert found["namespaceSelector"] == gate()["namespaceSelector"]
    assert WebhookSettings().lookup_deadline_seconds < found["timeoutSeconds"] <= 10
    reference = gate()["clientConfig"]["service"]
    assert found["clientConfig"] == {"service": {**reference, "path": "/hold"}}


def test_only_ray_pods_being_created_reach_the_webhook() -> None:
    assert gate()["rules"] == [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
            "scope": "Namespaced",
        }
    ]
    (selector,) = gate()["objectSelector"]["matchExpressions"]
    assert (selector["key"], selector["operator"]) == (names.RAY_NODE_TYPE, "In")
    assert tuple(selector["values"]) == names.RAY_NODE_TYPES


def test_the_systems_namespaces_never_wait_for_the_webhook() -> None:
    (selector,) = gate()["namespaceSelector"]["matchExpressions"]
    assert (selector["key"], selector["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
    assert {*selector["values"]} == {"kube-system", names.DEFAULT_NAMESPACE}


def test_a_missing_answer_refuses_and_a_review_has_no_side_effects() -> None:
    found = gate()
    assert found["failurePolicy"] == "Fail"
    assert found["sideEffects"] == "None"
    assert found["matchPolicy"] == "Equivalent"
    assert found["reinvocationPolicy"] == "IfNeeded"
    assert found["admissionReviewVersions"] == ["v1"]
    assert WebhookSettings().lookup_deadline_seconds < found["timeoutSeconds"] <= 10
    assert "caBundle" not in found["clientConfig"]  # applying again must not take it away


def test_the_service_leads_to_the_webhook() -> None:
    reference = gate()["clientConfig"]["service"]
    service = one("Service", reference["name"])
    assert reference["namespace"] == service["metadata"]["namespace"]
    assert reference["path"] == "/mutate"
    (port,) = service["spec"]["ports"]
    assert reference["port"] == port["port"]
    assert port["targetPort"] in {each["name"] for each in container_of("webhook")["ports"]}
    labels = workload("webhook")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_ports_are_those_the_programs_listen_on() -> None:
    def ports(program: str) -> dict[str, int]:
        return {each["name"]: each["containerPort"] for each in container_of(program)["ports"]}

    webhook = WebhookSettings()
    assert ports("webhook") == {"https": webhook.listen_port, "health": webhook.health_port}
    assert ports("coordinator") == {"health": CoordinatorSettings().listen_port}


def test_the_certificate_lies_where_the_webhook_looks() -> None:
    (mount,) = container_of("webhook")["volumeMounts"]
    (volume,) = pod_of("webhook")["volumes"]
    assert mount["name"] == volume["name"]
    settings = WebhookSettings()
    files = {Path(mount["mountPath"]) / each["path"] for each in volume["secret"]["items"]}
    assert files == {settings.certificate_file, settings.key_file}
    # Only with the group's right can a user that is not root read it.
    assert volume["secret"]["defaultMode"] == 0o440
    assert pod_of("webhook")["securityContext"]["fsGroup"]


def test_certs_fills_these_very_objects_and_looks_again() -> None:
    assert isinstance(into_the_cluster, click.Command)
    default = {option.name: option.default for option in into_the_cluster.params}
    program, command, *arguments = container_of("certs")["args"]
    assert (program, command) == ("certs", into_the_cluster.name)
    assert arguments == ["--every", "10", "--health-port", "8081"]
    (port,) = container_of("certs")["ports"]
    assert port == {"name": "health", "containerPort": 8081}
    assert default["namespace"] == names.DEFAULT_NAMESPACE
    assert one("Service", str(default["service"]))
    assert default["configurations"] == ("muster-webhook",)
    assert one("MutatingWebhookConfiguration", "muster-webhook")
    (volume,) = pod_of("webhook")["volumes"]
    assert volume["secret"]["secretName"] == default["secret"]


# ---- how the programs run


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_is_started_by_its_name_and_account(program: str) -> None:
    assert container_of(program)["args"][0] == program
    assert container_of(program)["image"] == "muster"
    assert pod_of(program)["serviceAccountName"] == f"muster-{program}"
    assert pod_of(program)["automountServiceAccountToken"] is True
    account = one("ServiceAccount", f"muster-{program}")
    assert account["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    ("program", "settings"), [("webhook", WebhookSettings), ("coordinator", CoordinatorSettings)]
)
def test_settings_exist_and_are_taken(program: str, settings: Any) -> None:
    prefix = settings.model_config["env_prefix"]
    given: Json = {}
    for variable in container_of(program)["env"]:
        assert variable["name"].startswith(prefix)
        given[variable["name"].removeprefix(prefix).lower()] = variable.get("value", "filled-in")
    # A pod's name alone outlives a restart of its container: two processes would share it.
    assert "identity" not in given
    settings(**given)
    assert {*given} <= {*settings.model_fields}


def test_the_component_for_the_extender_sets_the_guard() -> None:
    (component,) = documents(MANIFESTS / "guard-extender" / "kustomization.yaml")
    (patch,) = component["patches"]
    assert one(**patch["target"]) == workload("coordinator")
    named, added = yaml.safe_load(patch["patch"])
    assert (named["op"], named["value"]) == ("test", container_of("coordinator")["name"])
    assert added["path"].endswith("/containers/0/env/-")
    prefix = CoordinatorSettings.model_config["env_prefix"]
    assert added["value"]["name"] == f"{prefix}GUARD"
    assert CoordinatorSettings(guard=added["value"]["value"]).guard is Guard.EXTENDER


def test_pods_have_time_to_end() -> None:
    (delay,) = [v for v in container_of("webhook")["env"] if v["name"].endswith("DELAY_SECONDS")]
    needed = float(delay["value"]) + WebhookSettings().drain_seconds
    assert needed < pod_of("webhook")["terminationGracePeriodSeconds"]

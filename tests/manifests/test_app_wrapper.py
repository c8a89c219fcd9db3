"""The component for AppWrappers grants what is used, and a base without it grants none of it."""

import re
from typing import Any

import click
import pytest
import yaml

from certs.__main__ import into_the_cluster
from extender.settings import PREFIX
from extender.settings import Settings as ExtenderSettings
from kube.api.reviewed import NAME
from kube.objects import names
from tests.manifests.base import BASE, MANIFESTS, Json, documents
from tests.manifests.test_rights import Rights
from tests.rights_plugin import manifest_objects
from webhook.cache import WRAPPERS
from webhook.settings import Settings

HERE = MANIFESTS / "app-wrapper"
NO_OBJECTS = ("kustomization.yaml", "settings.yaml", "extender.yaml")
OBJECTS = [
    each
    for path in sorted(HERE.glob("*.yaml"))
    if path.name not in NO_OBJECTS
    for each in documents(path)
]
GROUPS = sorted(WRAPPERS)
USED: dict[str, Rights] = {
    # webhook/cache.py, webhook/wrap_app.py
    "webhook": {
        ("workload.codeflare.dev", "appwrappers"): {"get", "list", "watch"},
        ("mcad.ibm.com", "appwrappers"): {"get", "list", "watch"},
        ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
    },
    # certs/cluster.py
    "certs": {
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): {"get", "patch"},
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): {"get", "patch"},
    },
    # wrapper/shell
    "wrapper": {
        ("workload.codeflare.dev", "appwrappers"): {"get", "list", "watch"},
        ("mcad.ibm.com", "appwrappers"): {"get", "list", "watch"},
        ("workload.codeflare.dev", "appwrappers/status"): {"patch"},
        ("mcad.ibm.com", "appwrappers/status"): {"patch"},
        ("workload.codeflare.dev", "appwrappers/finalizers"): {"update"},
        ("mcad.ibm.com", "appwrappers/finalizers"): {"update"},
        ("muster.dev", "gangs"): {"get", "list", "watch"},
        ("", "pods"): {"delete", "list", "watch"},
        ("", "events"): {"create", "patch"},
        ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): {"get"},
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): {"get"},
        ("coordination.k8s.io", "leases"): {"create", "get", "patch"},
    },
    "coordinator": {
        ("workload.codeflare.dev", "appwrappers"): {"list", "watch"},
        ("mcad.ibm.com", "appwrappers"): {"list", "watch"},
    },
}


def of_kind(*kinds: str) -> list[Json]:
    return [found for found in OBJECTS if found["kind"] in kinds]


def one(kind: str, name: str) -> Json:
    (found,) = (each for each in of_kind(kind) if each["metadata"]["name"] == name)
    return found


def rules(role: Json) -> list[Json]:
    return role.get("rules") or []


def test_the_component_names_every_file_and_not_the_definitions() -> None:
    (found,) = documents(HERE / "kustomization.yaml")
    files = {path.name for path in HERE.glob("*.yaml")} - {*NO_OBJECTS}
    assert found["kind"] == "Component"
    assert {*found["resources"]} == files
    # A patch with a target changes nothing where there is none: the extender is in few overlays.
    target = {"kind": "Deployment", "name": "muster-extender"}
    patches = [{"path": "settings.yaml"}, {"path": "extender.yaml", "target": target}]
    assert found["patches"] == patches
    assert [path.name for path in (HERE / "crds").iterdir()] == ["codeflare.yaml"]


def test_the_base_knows_nothing_of_appwrappers() -> None:
    for path in BASE.glob("*.yaml"):
        assert "wrapper" not in path.read_text(encoding="utf-8").lower(), path.name


# ---- what calls the webhook


def webhooks() -> dict[str, Json]:
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    configurations = [one(kind, NAME) for kind in kinds]
    return {each["name"]: each for found in configurations for each in found["webhooks"]}


@pytest.mark.parametrize("name", ["note.muster.dev", "judge.muster.dev"])
def test_appwrappers_of_all_versions_are_reviewed_everywhere(name: str) -> None:
    found = webhooks()[name]
    versions = {
        f"{group}/{version}"
        for rule in found["rules"]
        for group in rule["apiGroups"]
        for version in rule["apiVersions"]
    }
    assert versions == {*names.APP_WRAPPER_API_VERSIONS}
    for rule in found["rules"]:
        # Not the status, which controllers write.
        assert (rule["resources"], rule["operations"]) == (["appwrappers"], ["CREATE", "UPDATE"])
    # No namespace is left out, nor any object: what is not reviewed names any creator.
    assert not {"namespaceSelector", "objectSelector"} & {*found}
    (condition,) = found["matchConditions"]
    assert condition["expression"].startswith("request.operation == 'CREATE' ||")
    noted = set(re.findall(r"muster\.dev/[a-z-]+", condition["expression"]))
    assert noted == {names.CREATED_BY}
    assert (found["failurePolicy"], found["matchPolicy"]) == ("Fail", "Equivalent")
    assert Settings().rights_deadline_seconds < found["timeoutSeconds"] <= 10


def test_pods_of_wrapped_objects_are_reviewed_as_ray_pods_are() -> None:
    found = webhooks()["wrapped.muster.dev"]
    (base,) = documents(BASE / "webhook-configuration.yaml")
    (gate,) = (each for each in base["webhooks"] if each["name"] == "gate.muster.dev")
    assert found["objectSelector"] == {
        "matchExpressions": [{"key": names.APP_WRAPPER, "operator": "Exists"}]
    }
    apart = ("name", "objectSelector")
    assert {k: v for k, v in found.items() if k not in apart} == {
        k: v for k, v in gate.items() if k not in apart
    }


def test_certs_fills_all_configurations() -> None:
    (patch,) = (
        p for p in documents(HERE / "settings.yaml") if p["metadata"]["name"] == "muster-certs"
    )
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    command, name, *args = container["args"]
    assert (command, name) == ("certs", into_the_cluster.name)
    context = into_the_cluster.make_context("certs", list(args))
    assert isinstance(context, click.Context)
    assert context.params["configurations"] == ("muster-webhook", NAME)
    assert context.params["validating"] == (NAME,)
    assert context.params["every"] == 10
    assert context.params["health_port"] == 8081


def test_the_setting_is_taken() -> None:
    (patch,) = (
        p for p in documents(HERE / "settings.yaml") if p["metadata"]["name"] == "muster-webhook"
    )
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    namespace, account, variable = container["env"]
    assert namespace["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.namespace"}}
    # The kubelet fills in a variable that was named before.
    named = account["value"].replace(f"$({namespace['name']})", names.DEFAULT_NAMESPACE)
    assert account["name"] == "MUSTER_WEBHOOK_WRAPPER_ACCOUNT"
    assert named == Settings().wrapper_account
    assert variable["name"] == "MUSTER_WEBHOOK_APP_WRAPPERS"
    assert Settings(app_wrappers=variable["value"]).managed_by == {names.MANAGED_BY, ""}


def test_the_extender_is_told_where_there_is_one() -> None:
    (deployment,) = (
        each
        for each in documents(MANIFESTS / "extender" / "extender.yaml")
        if each["kind"] == "Deployment"
    )
    (patch,) = yaml.safe_load((HERE / "extender.yaml").read_text(encoding="utf-8"))
    assert patch["path"] == "/spec/template/spec/containers/0/env/-"
    assert deployment["spec"]["template"]["spec"]["containers"][0]["env"]
    variable = patch["value"]
    assert variable["name"] == f"{PREFIX}APP_WRAPPERS"
    assert ExtenderSettings(app_wrappers=variable["value"]).app_wrappers
    assert not ExtenderSettings().app_wrappers


# ---- what the programs may do


def granted(program: str) -> Rights:
    account = {
        "kind": "ServiceAccount",
        "name": f"muster-{program}",
        "namespace": names.DEFAULT_NAMESPACE,
    }
    found: Rights = {}
    for binding in of_kind("ClusterRoleBinding", "RoleBinding"):
        of_what_is_wrapped = binding["roleRef"]["name"] == "muster-wrapped-workloads"
        if account in binding["subjects"] and not of_what_is_wrapped:
            role = one(binding["roleRef"]["kind"], binding["roleRef"]["name"])
            for rule in rules(role):
                for group in rule["apiGroups"]:
                    for resource in rule["resources"]:
                        found.setdefault((group, resource), set()).update(rule["verbs"])
    return found


@pytest.mark.parametrize("program", sorted(USED))
def test_a_program_may_do_what_it_does_and_nothing_else(program: str) -> None:
    assert granted(program) == USED[program]


def test_only_muster_wrapper_creates_what_is_wrapped() -> None:
    bindings = of_kind("ClusterRoleBinding")
    for name in ("muster-wrapped-objects", "muster-wrapped-workloads"):
        (binding,) = (each for each in bindings if each["roleRef"]["name"] == name)
        assert [each["name"] for each in binding["subjects"]] == ["muster-wrapper"]
    for rule in rules(one("ClusterRole", "muster-wrapped-workloads")):
        assert rule["verbs"] == ["create", "get", "delete"]
        assert "secrets" not in rule["resources"]


def test_no_role_of_muster_is_aggregated_into_another_one_of_it() -> None:
    """Deleted together, kube-controller-manager may make the aggregate again: decision 0053."""
    label = {names.WRAPPED_OBJECTS: "true"}
    (rule,) = one("ClusterRole", "muster-wrapped-objects")["aggregationRule"][
        "clusterRoleSelectors"
    ]
    assert rule == {"matchLabels": label}
    everything = [*manifest_objects()]
    assert any("aggregationRule" in each for each in everything)
    for each in everything:
        labels = each["metadata"].get("labels", {}) if each["kind"] == "ClusterRole" else {}
        assert not label.items() <= labels.items(), each["metadata"]["name"]


def test_what_grants_rights_can_never_be_wrapped_unasked() -> None:
    for role in of_kind("ClusterRole", "Role"):
        for rule in rules(role):
            assert "rbac.authorization.k8s.io" not in rule["apiGroups"]
            assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])


def test_users_may_write_appwrappers_and_not_their_status() -> None:
    said = {"view": {"get", "list", "watch"}, "edit": {"create", "update", "patch", "delete"}}
    for role, verbs in said.items():
        found = one("ClusterRole", f"muster-app-wrapper-{role}")
        label = f"rbac.authorization.k8s.io/aggregate-to-{role}"
        assert found["metadata"]["labels"] == {label: "true"}
        (rule,) = rules(found)
        assert (sorted(rule["apiGroups"]), rule["resources"]) == (GROUPS, ["appwrappers"])
        assert {*rule["verbs"]} == verbs


def test_every_object_is_in_its_place() -> None:
    namespaced: dict[str, Any] = {"ServiceAccount": 1, "Role": 1, "RoleBinding": 1}
    for found in OBJECTS:
        namespace = names.DEFAULT_NAMESPACE if found["kind"] in namespaced else None
        if found["kind"] not in ("Deployment", "PodDisruptionBudget"):
            assert found["metadata"].get("namespace") == namespace

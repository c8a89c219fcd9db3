"""The manifests say what the programs expect, and grant what they use and no more."""

import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from certs.__main__ import into_the_cluster
from coordinator.gang.nominations import Guard
from coordinator.settings import Settings as CoordinatorSettings
from kube.codec.volumes.storage import WATCHES
from kube.devices.device_facts import DEVICE_WATCHES
from kube.objects import names
from webhook.settings import Settings as WebhookSettings

Json = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "manifests"
BASE = MANIFESTS / "base"
PROGRAMS = ("webhook", "coordinator", "certs")


def documents(path: Path) -> list[Json]:
    return [each for each in yaml.safe_load_all(path.read_text(encoding="utf-8")) if each]


OBJECTS = [
    each
    for path in sorted(BASE.glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for each in documents(path)
]


def one(kind: str, name: str) -> Json:
    (found,) = [o for o in OBJECTS if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    return found


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


# ---- what the programs may do

Rights = dict[tuple[str, str], set[str]]

# (group, resource): the verbs, each with the place that needs it.
USED: dict[str, Rights] = {
    "webhook": {
        # webhook/serve.py watches their metadata, webhook/cache.py reads one on a miss
        ("ray.io", "rayclusters"): {"get", "list", "watch"},
        # webhook/hold_app.py: which queues have RayClusters held, and the deadlines of a RayJob
        ("muster.dev", "gangqueues"): {"list", "watch"},
        ("ray.io", "rayjobs"): {"get"},
        ("", "namespaces"): {"get", "list", "watch"},
        # webhook/quota_room.py: whether there is room for all pods of a RayCluster
        ("", "resourcequotas"): {"list", "watch"},
    },
    "coordinator": {
        # coordinator/shell/writes/pod_writes.py: get after a failed patch, patch to release and to
        # fence, delete what was released and cannot start; coordinator/shell/app.py: list and watch
        ("", "pods"): {"get", "list", "watch", "patch", "delete"},
        ("", "pods/eviction"): {"create"},
        ("", "pods/status"): {"patch"},
        ("policy", "poddisruptionbudgets"): {"list"},
        ("", "nodes"): {"list", "watch"},
        ("", "namespaces"): {"list", "watch"},
        # coordinator/shell/app.py: what the pods of held gangs are admitted by
        ("", "limitranges"): {"list", "watch"},
        ("", "resourcequotas"): {"list", "watch"},
        ("node.k8s.io", "runtimeclasses"): {"list", "watch"},
        # coordinator/shell/writes/ray_writes.py: suspended and resumed
        ("ray.io", "rayclusters"): {"list", "watch", "patch"},
        ("ray.io", "rayjobs"): {"list", "watch", "patch"},
        ("ray.io", "rayservices"): {"list", "watch"},
        ("scheduling.k8s.io", "priorityclasses"): {"list", "watch"},
        # kube/devices/device_facts.py: what is watched for the sake of devices by claim
        **{
            (each.resource.group, each.resource.plural): {"list", "watch"}
            for each in DEVICE_WATCHES
        },
        # coordinator/shell/app.py: where a profile has default constraints that refuse
        # kube/codec/volumes/storage.py: what is watched for the sake of volumes
        **{(each.resource.group, each.resource.plural): {"list", "watch"} for each in WATCHES},
        # coordinator/shell/writes/gang_writes.py: create, patch of the spec, delete of another's,
        # get after a failed write; the status has its own right
        # The last is what the policies ask for: manifests/base/policies.yaml
        ("muster.dev", "gangs"): {"get", "list", "watch", "create", "patch", "delete", "release"},
        ("muster.dev", "gangs/status"): {"patch"},
        # coordinator/shell/app.py: list and watch
        # coordinator/shell/writes/queue_writes.py: finalizer
        ("muster.dev", "gangqueues"): {"list", "watch", "patch"},
        ("muster.dev", "gangqueues/status"): {"patch"},
        # coordinator/shell/definitions.py, of its own kinds by name
        ("apiextensions.k8s.io", "customresourcedefinitions"): {"get"},
        # kube/api/event_recorder.py
        ("", "events"): {"create", "patch"},
        # kube/api/leader_election.py
        ("coordination.k8s.io", "leases"): {"create", "get", "patch"},
    },
    "certs": {
        # certs/cluster.py
        ("", "secrets"): {"get", "create", "patch"},
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): {"get", "patch"},
        # kube/api/leader_election.py
        ("coordination.k8s.io", "leases"): {"create", "get", "patch"},
    },
}


def roles_of(program: str) -> list[Json]:
    """The roles that are bound to the account of a program."""
    account = {
        "kind": "ServiceAccount",
        "name": f"muster-{program}",
        "namespace": names.DEFAULT_NAMESPACE,
    }
    bindings = [o for o in OBJECTS if account in o.get("subjects", ())]
    return [one(each["roleRef"]["kind"], each["roleRef"]["name"]) for each in bindings]


def rules_of(program: str) -> list[Json]:
    return [rule for role in roles_of(program) for rule in role["rules"]]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_may_do_what_it_does_and_nothing_else(program: str) -> None:
    granted: Rights = {}
    for rule in rules_of(program):
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                granted.setdefault((group, resource), set()).update(rule["verbs"])
    assert granted == USED[program]


def viewing() -> Json:
    return one("ClusterRole", "muster-view")


def test_viewers_of_a_namespace_may_see_why_a_gang_waits() -> None:
    assert viewing()["metadata"]["labels"] == {
        "rbac.authorization.k8s.io/aggregate-to-view": "true"
    }
    (rule,) = viewing()["rules"]
    assert rule["apiGroups"] == [names.GROUP]
    assert {*rule["resources"]} == {"gangs", "gangqueues"}
    assert {*rule["verbs"]} == {"get", "list", "watch"}


def test_every_role_is_bound_once_to_its_own_account() -> None:
    roles = [o for o in OBJECTS if o["kind"] in ("Role", "ClusterRole") and o is not viewing()]
    bound = [role for program in PROGRAMS for role in roles_of(program)]
    assert len(bound) == len(roles)
    for found in OBJECTS:
        if found["kind"].endswith("RoleBinding"):
            (subject,) = found["subjects"]
            assert subject["name"] == found["roleRef"]["name"] == found["metadata"]["name"]
            assert found["roleRef"]["kind"] == found["kind"].removesuffix("Binding")


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_is_granted_by_asterisk(program: str) -> None:
    for rule in rules_of(program):
        assert "*" not in (*rule["apiGroups"], *rule["resources"], *rule["verbs"])


def test_single_objects_are_granted_by_name() -> None:
    by_name = {
        (program, resource, name, *rule["verbs"])
        for program in PROGRAMS
        for rule in rules_of(program)
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ())
    }
    assert by_name == {
        ("coordinator", "leases", names.LEASE_NAME, "get", "patch"),
        ("coordinator", "leases", "kube-scheduler", "get"),
        ("coordinator", "customresourcedefinitions", "gangs.muster.dev", "get"),
        ("coordinator", "customresourcedefinitions", "gangqueues.muster.dev", "get"),
        ("certs", "secrets", "muster-webhook-tls", "get", "patch"),
        ("certs", "leases", "muster-certs", "get", "patch"),
        ("certs", "mutatingwebhookconfigurations", "muster-webhook", "get", "patch"),
    }


@pytest.mark.parametrize(
    ("program", "resource"), [("coordinator", "leases"), ("certs", "secrets"), ("certs", "leases")]
)
def test_secrets_and_leases_only_in_the_own_namespace(program: str, resource: str) -> None:
    """But for kube-scheduler's Lease, which is in another one."""
    holders = {
        role["kind"]
        for role in roles_of(program)
        for rule in role["rules"]
        if resource in rule["resources"] and rule.get("resourceNames") != ["kube-scheduler"]
    }
    assert holders == {"Role"}


def test_our_own_group_is_spelled_as_in_the_code() -> None:
    text = (BASE / "coordinator-rbac.yaml").read_text(encoding="utf-8")
    assert {*re.findall(r"\[(muster\.[a-z]+)\]", text)} == {names.GROUP}

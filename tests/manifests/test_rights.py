"""Accounts have the rights that their programs use, and no others."""

import re

import pytest

from kube.codec.volumes.storage import WATCHES
from kube.devices.device_facts import DEVICE_WATCHES
from kube.objects import names
from tests.manifests.base import BASE, OBJECTS, PROGRAMS, Json, one

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

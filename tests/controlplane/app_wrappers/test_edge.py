"""AppWrappers at the API server: what is stored of them, and who may wrap what.

There is the webhook and no other program: nothing is dispatched here.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kube.objects import names
from kube.objects.user import read_user
from testbed.errors import TestbedError
from testbed.muster import APP_WRAPPER, ROOT, Muster
from testbed.waiting import wait_until
from tests.controlplane.app_wrappers.place import (
    POOR,
    TENANT,
    Json,
    Place,
    config_map,
    deployment,
    wrapper,
)

BETA2, BETA1 = names.CODEFLARE_V1BETA2, names.CODEFLARE_V1BETA1
MCAD = names.MCAD_V1BETA1


# ---- what is stored

OBJECT = {**deployment(2), "odd": {"kept": [1, {"two": None}]}}
ALL_OF_BETA1: Json = {
    "priority": 7,
    "priorityslope": 0.5,
    "service": {"spec": {"ports": [{"port": 80}], "odd": True}},
    "selector": {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}],
    },
    "schedulingSpec": {
        "nodeSelector": {"zone": "a"},
        "minAvailable": 2,
        "requeuing": {
            "initialTimeInSeconds": 1,
            "timeInSeconds": 300,
            "maxTimeInSeconds": 900,
            "growthType": "exponential",
            "numRequeuings": 1,
            "maxNumRequeuings": 5,
        },
        "dispatchDuration": {"expected": 10, "limit": 20, "overrun": True},
    },
    "resources": {
        "Items": [],
        "GenericItems": [
            {
                "replicas": 1,
                "minavailable": 1,
                "allocated": 0,
                "priority": 3,
                "priorityslope": 0.25,
                "completionstatus": "Complete",
                "custompodresources": [
                    {
                        "replicas": 2,
                        "requests": {"cpu": 1, "memory": "1Gi"},
                        "limits": {"cpu": "1500m"},
                    }
                ],
                "generictemplate": OBJECT,
            }
        ],
    },
}
ALL_OF_BETA2: Json = {
    "suspend": True,
    "managedBy": names.MANAGED_BY,
    "components": [
        {
            "annotations": {"a": "b"},
            "podSets": [
                {"replicas": 2, "path": "template.spec.template", "annotations": {"c": "d"}}
            ],
            "podSetInfos": [
                {
                    "annotations": {"e": "f"},
                    "labels": {"g": "h"},
                    "nodeSelector": {"i": "j"},
                    "tolerations": [
                        {
                            "key": "k",
                            "operator": "Equal",
                            "value": "l",
                            "effect": "NoExecute",
                            "tolerationSeconds": 5,
                        }
                    ],
                    "schedulingGates": [{"name": "example.com/gate"}],
                }
            ],
            "template": OBJECT,
        }
    ],
}
AT = "2026-01-02T03:04:05Z"
MICRO = "2026-01-02T03:04:05.678901Z"
ALL_OF_STATUS_1: Json = {
    "pending": 1,
    "running": 2,
    "Succeeded": 3,
    "failed": 4,
    "template": 5,
    "canrun": True,
    "isdispatched": True,
    "state": "Pending",
    "message": "m",
    "systempriority": 1.5,
    "queuejobstate": "HeadOfLine",
    "controllerfirsttimestamp": MICRO,
    "controllerfirstdispatchtimestamp": MICRO,
    "filterignore": True,
    "sender": "s",
    "local": True,
    # One type twice, as MCAD writes them.
    "conditions": [
        {
            "type": "Queueing",
            "status": "True",
            "reason": "AwaitingHeadOfLine",
            "message": "m",
            "lastUpdateMicroTime": MICRO,
            "lastTransitionMicroTime": MICRO,
        },
        {"type": "Queueing", "status": "True"},
    ],
    "pendingpodconditions": [
        {"podname": "p", "conditions": [{"type": "PodScheduled", "status": "False"}]}
    ],
    "totalcpu": 6,
    "totalmemory": 7,
    "totalgpu": 8,
    "requeueingTimeInSeconds": 9,
    "numberOfRequeueings": 10,
    "laterField": {"kept": True},
}
ALL_OF_STATUS_2: Json = {
    "phase": "Resuming",
    "resettingCount": 1,
    "conditions": [
        {
            "type": "QuotaReserved",
            "status": "True",
            "reason": "r",
            "message": "m",
            "lastTransitionTime": AT,
            "observedGeneration": 1,
        }
    ],
    "componentStatus": [
        {
            "name": "web",
            "kind": "Deployment",
            "apiVersion": "apps/v1",
            "podSets": [{"replicas": 2, "path": "template.spec.template"}],
            "conditions": [{"type": "ResourcesDeployed", "status": "True", "reason": "r"}],
        }
    ],
}


@pytest.mark.parametrize(
    ("written", "other", "spec", "status"),
    [
        (BETA1, BETA2, ALL_OF_BETA1, ALL_OF_STATUS_1),
        (BETA2, BETA1, ALL_OF_BETA2, ALL_OF_STATUS_2),
        (MCAD, MCAD, ALL_OF_BETA1, ALL_OF_STATUS_1),
    ],
    ids=["v1beta1", "v1beta2", "mcad"],
)
def test_nothing_is_lost_on_the_way_through_the_other_version(
    place: Place, written: str, other: str, spec: Json, status: Json
) -> None:
    body = {
        "apiVersion": written,
        "kind": "AppWrapper",
        "metadata": {"name": "aw"},
        # Others' AppWrappers are let through, whatever is in them.
        "spec": {**spec, "managedBy": "example.com/other"},
    }
    place.kubectl("create", "--validate=strict", "-f", "-", body=body)
    place.put({**place.get("aw", written), "status": status}, "status")
    there = place.get("aw", other)
    assert there["apiVersion"] == other
    there["metadata"]["labels"] = {"changed": "yes"}
    place.put({**place.put(there), "status": there["status"]}, "status")

    found = place.get("aw", written)
    assert (found["spec"], found["status"]) == (body["spec"], status)
    assert found["metadata"]["labels"] == {"changed": "yes"}


@pytest.mark.variant
def test_the_schema_refuses_what_no_generation_has(place: Place) -> None:
    neither = wrapper(config_map()) | {"spec": {"suspend": True}}
    assert "exactly one of components (v1beta2) and resources" in place.refused(TENANT, neither)
    early = wrapper() | {"spec": {"resources": {"Items": [{"template": {}}]}}}
    assert "Items is of MCAD before 1.33" in place.refused(TENANT, early)
    misspelt = wrapper(config_map(), suspended=True)
    with pytest.raises(TestbedError, match=r'unknown field "spec\.suspended"'):
        place.kubectl("create", "--validate=strict", "-f", "-", body=misspelt)


@pytest.mark.variant
def test_definitions_of_others_are_not_replaced(muster: Muster) -> None:
    """As docs/app-wrapper-install.md has it: created, not applied."""
    with pytest.raises(TestbedError, match="AlreadyExists"):
        muster.cluster.kubectl("create", "-f", str(APP_WRAPPER / "crds"))


def test_the_api_server_takes_the_whole_component(muster: Muster, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "manifests", tmp_path / "manifests")
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    parts = {"resources": ["../manifests/base"], "components": ["../manifests/app-wrapper"]}
    (overlay / "kustomization.yaml").write_text(json.dumps(parts))
    # The rights and configurations of the fixture were applied by another manager.
    taking = ("apply", "--server-side", "--force-conflicts", "--dry-run=server")
    said = muster.cluster.kubectl(*taking, "-k", str(overlay))
    assert "validatingwebhookconfiguration.admissionregistration.k8s.io/muster-app-wrapper" in said


@pytest.mark.variant
def test_kubectl_prints_either_generation_in_its_words(place: Place) -> None:
    """kubectl asks for the newest version, which MCAD's users see too."""
    older = {"kind": "AppWrapper", "metadata": {"name": "old"}, "spec": ALL_OF_BETA1}
    place.send(TENANT, {"apiVersion": BETA1, **older})
    place.send(TENANT, wrapper(config_map(), name="new"))
    waits = {"phase": "Suspended", "reason": "InsufficientResources"}
    of_mcad = {"state": "Pending", "queuejobstate": "Backoff"}
    place.put({**place.get("old"), "status": waits | of_mcad}, "status")
    place.put({**place.get("new"), "status": waits}, "status")
    listed = place.kubectl("get", "appwrappers.workload.codeflare.dev")
    rows = [line.split() for line in listed.splitlines()]
    assert rows[0] == ["NAME", "STATUS", "CONDITION", "AGE"]
    assert [row[:3] for row in rows[1:]] == [
        ["new", "Suspended", "InsufficientResources"],
        ["old", "Pending", "Backoff"],
    ]


# ---- who created it, and what that user may wrap


def creator(place: Place, name: str = "aw") -> str | None:
    """The user that an AppWrapper names."""
    note = place.get(name)["metadata"].get("annotations", {}).get(names.CREATED_BY)
    user = None if note is None else read_user(note)
    return None if user is None else user.username


def test_the_creator_is_written_over_what_was_forged_and_stays(place: Place) -> None:
    body = wrapper(config_map(), deployment())
    forged = {names.CREATED_BY: '{"username":"system:admin","groups":["system:masters"]}'}
    body["metadata"]["annotations"] = forged
    place.send(TENANT, body)
    assert creator(place) == TENANT
    user = read_user(place.get("aw")["metadata"]["annotations"][names.CREATED_BY])
    assert user is not None
    assert "team" in user.groups

    assert "stays as it was" in place.refused(TENANT, body, "replace")
    del body["metadata"]["annotations"]
    place.send(TENANT, body, "replace")
    assert creator(place) == TENANT


@pytest.mark.variant
def test_what_is_anothers_keeps_no_note_and_cannot_become_musters(place: Place) -> None:
    body = wrapper(config_map(), managedBy="example.com/other")
    body["metadata"]["annotations"] = {names.CREATED_BY: '{"username":"system:admin"}'}
    place.send(POOR, body)
    assert creator(place) is None
    body["spec"]["managedBy"] = names.MANAGED_BY
    del body["metadata"]["annotations"]
    assert "managedBy" in place.refused(TENANT, body, "replace")


def test_a_user_wraps_only_what_the_user_may_create(place: Place) -> None:
    said = place.refused(POOR, wrapper(config_map(), deployment()))
    assert f'user "{POOR}" cannot wrap this' in said
    assert "create configmaps in namespace" in said
    assert "spec.components[1] (Deployment web) needs the right to create deployments.apps" in said

    own = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    grant = {**own, "metadata": {"name": "mine"}, "roleRef": role, "subjects": []}
    said = place.refused(TENANT, wrapper(grant))
    assert "bind clusterroles.rbac.authorization.k8s.io cluster-admin" in said


def test_what_cannot_be_wrapped_is_said_at_once(place: Place) -> None:
    cluster_role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "a"},
    }
    unknown = {"apiVersion": "example.com/v1", "kind": "Unheard", "metadata": {"name": "a"}}
    secret: Json = {"apiVersion": "v1", "kind": "Secret"}
    secret["metadata"] = {"name": "token", "namespace": "kube-system"}
    said = place.refused(TENANT, wrapper(config_map(), cluster_role, secret))
    assert "spec.components[1] (ClusterRole a): template.kind" in said
    assert "a kind whose objects are in a namespace" in said
    assert "spec.components[2] (Secret token): template.metadata.namespace" in said
    marked: dict[str, Any] = {names.OPT_IN: "true"}
    placed = deployment(**marked)
    placed["spec"]["template"]["spec"]["nodeName"] = "n"
    said = place.refused(TENANT, wrapper(placed))
    assert "nodeName" in said
    assert names.OPT_IN in said
    said = place.refused(TENANT, wrapper(config_map(), unknown))
    assert "spec.components[1] (Unheard a)" in said
    assert "Unheard of example.com/v1" in said
    nameless: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "a"}}}
    assert "spec.components[0] (Pod): template.metadata.name" in place.refused(
        TENANT, wrapper(nameless)
    )
    said = place.refused(TENANT, wrapper({"metadata": {"name": "a"}}))
    assert "spec.components[0].template.kind: Required value" in said
    for namespace in ("kube-system", "muster-system"):
        with pytest.raises(TestbedError, match="all namespaces but kube-system and muster-system"):
            place.cluster.kubectl(
                "-n", namespace, "create", "-f", "-", input=json.dumps(wrapper(config_map()))
            )
    empty = wrapper() | {"spec": {"resources": {"GenericItems": [{}]}}}
    assert "spec.resources.GenericItems[0]: generictemplate" in place.refused(TENANT, empty)


@pytest.mark.variant
def test_an_operator_adds_a_kind_by_a_labelled_role(place: Place) -> None:
    policy: Json = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    policy |= {"metadata": {"name": "a"}, "spec": {"podSelector": {}}}
    said = place.refused(TENANT, wrapper(policy))
    assert "muster-wrapper" in said
    assert "create networkpolicies.networking.k8s.io" in said
    rule = {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"]}
    role = {
        "metadata": {"name": "wraps-network-policies", "labels": {names.WRAPPED_OBJECTS: "true"}},
        "rules": [{**rule, "verbs": ["create", "get", "delete"]}],
    }
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    place.cluster.api.create(roles, role)
    try:
        # kube-controller-manager fills the rules in.
        wait_until(lambda: _is_taken(place, wrapper(policy)), "the kind to be taken")
    finally:
        with place.cluster.api.session() as session:
            session.call("DELETE", f"{roles}/wraps-network-policies")


def _is_taken(place: Place, body: Json) -> bool:
    try:
        place.send(TENANT, body)
    except TestbedError:
        return False
    return True


@pytest.mark.variant
def test_an_edit_is_judged_by_the_rights_of_its_author(place: Place) -> None:
    place.send(TENANT, wrapper(config_map()))
    place.send(POOR, wrapper(config_map(), suspend=True), "apply")
    said = place.refused(POOR, wrapper(config_map(), deployment()), "apply")
    assert "create deployments.apps" in said
    assert "create configmaps" not in said
    place.send(TENANT, wrapper(config_map(), deployment()), "apply")

    place.put({**place.get("aw"), "status": {"phase": "Running"}}, "status")
    said = place.refused(TENANT, wrapper(deployment()), "apply")
    assert "while the wrapped objects exist" in said


@pytest.mark.variant
def test_without_the_webhook_appwrappers_wait_and_nothing_else(
    place: Place, muster: Muster
) -> None:
    place.send(TENANT, wrapper(config_map(), name="before"))
    muster.webhook.stop()
    try:
        # Labels and finalizers may change, so that it can be deleted; the note and the items not.
        place.kubectl("label", "aw", "before", "a=b")
        for changed in (f"{names.CREATED_BY}=x", f"{names.CREATED_BY}-"):
            with pytest.raises(TestbedError, match=r"(note|judge)\.muster\.dev"):
                place.kubectl("annotate", "--overwrite", "aw", "before", changed)
        edited = wrapper(config_map("other"), name="before")
        assert "judge.muster.dev" in place.refused(TENANT, edited, "apply")
        place.kubectl("delete", "aw", "before", "--cascade=foreground")
        assert "note.muster.dev" in place.refused(TENANT, wrapper(config_map()))
        place.send(TENANT, config_map())
    finally:
        muster.webhook.restart()
        muster.wait_ready()
    place.send(TENANT, wrapper(config_map("other")))

"""The policies let each port of each server be called, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kube.objects import names
from tests.manifests.base import documents
from tests.manifests.test_workloads import DEPLOYMENTS

Json = dict[str, Any]
MANIFESTS = Path(__file__).parents[2] / "manifests"
FOLDER = MANIFESTS / "network-policies"


POLICIES = documents(FOLDER / "policies.yaml")
TEMPLATES = [each["spec"]["template"] for each in DEPLOYMENTS.values()]


def selects(selector: Json, labels: dict[str, str]) -> bool:
    wanted = selector.get("matchLabels", {}).items() <= labels.items()
    among = selector.get("matchExpressions", [])
    assert all(each["operator"] == "In" for each in among)
    return wanted and all(labels.get(each["key"]) in each["values"] for each in among)


def policies_of(template: Json) -> list[Json]:
    labels = template["metadata"]["labels"]
    return [each for each in POLICIES if selects(each["spec"]["podSelector"], labels)]


def test_the_ports_that_may_be_called_are_those_of_the_containers() -> None:
    for template in TEMPLATES:
        allowed = [
            port
            for policy in policies_of(template)
            for rule in policy["spec"].get("ingress", [])
            for port in rule["ports"]
        ]
        ports = {
            port["containerPort"]
            for container in template["spec"]["containers"]
            for port in container.get("ports", [])
        }
        assert sorted(each["port"] for each in allowed) == sorted(ports), template["metadata"]
        assert {each["protocol"] for each in allowed} <= {"TCP"}


def test_no_pod_of_ours_is_without_a_policy() -> None:
    for template in TEMPLATES:
        assert policies_of(template), template["metadata"]


def test_every_policy_selects_something_and_only_in_our_namespace() -> None:
    for policy in POLICIES:
        assert (policy["apiVersion"], policy["kind"]) == (
            "networking.k8s.io/v1",
            "NetworkPolicy",
        )
        assert policy["metadata"]["namespace"] == names.DEFAULT_NAMESPACE
        assert policy["spec"]["policyTypes"] == ["Ingress"]
        assert any(policy in policies_of(template) for template in TEMPLATES)


def test_as_they_stand_they_keep_no_caller_out() -> None:
    """An operator who takes them without naming addresses must not lose the webhook."""
    for policy in POLICIES:
        for rule in policy["spec"].get("ingress", []):
            blocks = [each["ipBlock"] for each in rule["from"]]
            assert blocks == [{"cidr": "0.0.0.0/0"}, {"cidr": "::/0"}]


def test_they_are_opt_in() -> None:
    (found,) = documents(FOLDER / "kustomization.yaml")
    assert found["kind"] == "Component"
    files = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert {*found["resources"]} == files
    for path in MANIFESTS.glob("**/kustomization.yaml"):
        (other,) = documents(path)
        assert not any("network-policies" in each for each in other.get("components", []))

"""The three roles for people: what each may do, and what none may."""

from typing import Any

import pytest
import yaml

from tests.packaging.tree import ROOT

FOLDER = ROOT / "manifests" / "roles"
Json = dict[str, Any]
Grants = set[tuple[str, str]]

ROLES: dict[str, Json] = {
    each["metadata"]["name"]: each
    for each in yaml.safe_load_all((FOLDER / "rbac.yaml").read_text(encoding="utf-8"))
}
RAY = ("rayclusters", "rayjobs", "rayservices", "raycronjobs")
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")
SEEN: Grants = {(kind, verb) for kind in ("gangs", "pods", "events") for verb in READ}
SEEN |= {("pods/log", "get"), ("namespaces", "get")}
SEEN |= {(kind, verb) for kind in ("limitranges", "resourcequotas") for verb in ("get", "list")}


def granted(name: str) -> Grants:
    return {
        (resource, verb)
        for rule in ROLES[name]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def all_of(*kinds: str) -> Grants:
    return {(kind, verb) for kind in kinds for verb in (*READ, *WRITE)}


EXPECTED = {
    "muster-admin": SEEN | all_of(*RAY, "gangqueues"),
    "muster-namespace-admin": SEEN | all_of(*RAY),
    "muster-user": SEEN
    | {("rayclusters", verb) for verb in READ}
    | {("rayjobs", verb) for verb in (*READ, "create", "delete")},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_role_has_the_verbs_that_its_people_need_and_no_other(name: str) -> None:
    assert ROLES.keys() == EXPECTED.keys()
    assert granted(name) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_no_role_has_everything_or_releases_gangs_or_reads_secrets(name: str) -> None:
    resources = {resource.partition("/")[0] for resource, _ in granted(name)}
    assert not resources & {"*", "secrets", "services", "serviceaccounts", "nodes"}
    assert {each for each, _ in granted(name) if "/" in each} == {"pods/log"}
    assert not {verb for _, verb in granted(name)} & {"*", "release", "impersonate"}


def test_only_the_role_of_owners_is_added_to_another() -> None:
    aggregated = {
        name: [key for key in each["metadata"]["labels"] if "aggregate" in key]
        for name, each in ROLES.items()
    }
    assert aggregated == {
        "muster-admin": [],
        "muster-namespace-admin": ["rbac.authorization.k8s.io/aggregate-to-admin"],
        "muster-user": [],
    }

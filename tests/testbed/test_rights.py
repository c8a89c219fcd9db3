"""Requests are matched to rules as RBAC does it, and what was never used or was refused is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.audit import Auditor, asked, audit_policy
from testbed.rights import Asked, Grant, Uses, grants_of

Json = dict[str, Any]
HOME = "muster-system"


def role(name: str, *rules: Json, namespace: str = "", **more: Any) -> Json:
    place = {"namespace": namespace} if namespace else {}
    labels = more.pop("labels", {})
    kind = "Role" if namespace else "ClusterRole"
    return {
        "kind": kind,
        "metadata": {"name": name, "labels": labels, **place},
        "rules": [*rules],
        **more,
    }


def rule(verbs: str, resources: str, *names: str, group: str = "") -> Json:
    named = {"resourceNames": [*names]} if names else {}
    split = {"verbs": verbs.split(), "resources": resources.split()}
    return {"apiGroups": [group], **split, **named}


def bound(role: Json, account: str = "worker", *, namespace: str = "", home: str = HOME) -> Json:
    place = {"namespace": namespace} if namespace else {}
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": "any", **place},
        "roleRef": {"kind": role["kind"], "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": home}],
    }


def grants(*objects: Json) -> frozenset[Grant]:
    return grants_of(objects, HOME)


def request(verb: str, resource: str, **more: Any) -> Asked:
    usual = {"group": "", "name": "", "namespace": "", "allowed": True, "account": "worker"}
    usual["agent"] = "muster-worker"
    return Asked(**{**usual, **more}, verb=verb, resource=resource)


def test_each_verb_on_each_resource_by_each_name_is_a_grant() -> None:
    many = role("many", rule("get patch", "leases pods/status", "a", "b"), namespace=HOME)
    found = grants(many, bound(many, namespace=HOME))
    assert len(found) == 8
    assert {(each.verb, each.resource, each.name, each.namespace) for each in found} == {
        (verb, resource, name, HOME)
        for verb in ("get", "patch")
        for resource in ("leases", "pods/status")
        for name in ("a", "b")
    }


def test_only_what_is_bound_to_accounts_of_the_namespace_counts() -> None:
    viewing, other = role("view", rule("get", "pods")), role("other", rule("list", "pods"))
    elsewhere = bound(other, home="team")
    user = {**bound(other), "subjects": [{"kind": "User", "name": "worker"}]}
    assert grants(viewing, other, elsewhere, user) == frozenset()


def test_a_role_that_is_not_of_these_manifests_is_an_error_unless_it_is_named() -> None:
    """Bound to cluster-admin, an account could do all, and no grant of it would be unused."""
    wide = bound(role("cluster-admin"))
    with pytest.raises(ValueError, match="role cluster-admin of worker is not among these"):
        grants(wide)
    assert grants_of([wide], HOME, [("worker", "cluster-admin")]) == frozenset()
    with pytest.raises(ValueError, match="role cluster-admin of worker"):
        grants_of([wide], HOME, [("other", "cluster-admin"), ("worker", "view")])


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("Group", "system:authenticated"),
        ("Group", "system:serviceaccounts"),
        ("Group", f"system:serviceaccounts:{HOME}"),
        ("User", f"system:serviceaccount:{HOME}:worker"),
    ],
)
def test_rights_of_accounts_by_other_subjects_are_an_error(kind: str, name: str) -> None:
    reading = role("reading", rule("get", "pods"))
    binding = {**bound(reading), "subjects": [{"kind": kind, "name": name}]}
    with pytest.raises(ValueError, match=f"subject {name}; allowed: service accounts by name"):
        grants(reading, binding)


def test_a_list_is_an_error_for_what_is_in_it_is_not_seen() -> None:
    with pytest.raises(ValueError, match="kind List"):
        grants({"kind": "List", "items": [role("r", rule("get", "pods"))]})


def test_an_empty_list_of_names_is_every_name() -> None:
    reading = role("reading", {**rule("get", "secrets"), "resourceNames": []})
    (found,) = grants(reading, bound(reading))
    assert found.name == ""


def test_a_cluster_role_that_a_binding_of_a_namespace_names_grants_there_alone() -> None:
    reading = role("reading", rule("get", "pods"))
    (found,) = grants(reading, bound(reading, namespace="team"))
    assert found.namespace == "team"


def test_a_role_of_another_namespace_is_not_the_one_that_is_bound() -> None:
    here = role("same", rule("get", "pods"), namespace=HOME)
    there = role("same", rule("delete", "pods"), namespace="team")
    (found,) = grants(here, there, bound(here, namespace=HOME))
    assert found.verb == "get"


def test_what_is_aggregated_to_a_role_counts_as_its_own() -> None:
    selector = {"matchLabels": {"aggregate": "true"}}
    whole = role("whole", aggregationRule={"clusterRoleSelectors": [selector]})
    part = role("part", rule("create", "jobs", group="batch"), labels={"aggregate": "true"})
    stranger = role("stranger", rule("delete", "jobs", group="batch"), labels={"other": "true"})
    (found,) = grants(whole, part, stranger, bound(whole))
    assert (found.role, found.verb) == ("ClusterRole whole", "create")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (rule("*", "pods"), r"role wide: \* in verbs"),
        (rule("get", "*"), r"role wide: \* in resources"),
        (rule("patch", "*/status"), r"role wide: \* in resources"),
        (rule("get", "pods", group="*"), r"role wide: \* in apiGroups"),
        ({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, "nonResourceURLs in a rule"),
    ],
)
def test_a_rule_whose_use_cannot_be_shown_is_refused(wrong: Json, said: str) -> None:
    wide = role("wide", wrong)
    with pytest.raises(ValueError, match=said):
        grants(wide, bound(wide))


GRANT = Grant("Role r", "worker", "get", "apps", "deployments", "one", HOME)
FITTING = request("get", "deployments", group="apps", name="one", namespace=HOME)


def test_a_request_that_equals_a_grant_uses_it() -> None:
    assert GRANT.allows(FITTING)
    everywhere = GRANT._replace(namespace="", name="")
    assert everywhere.allows(FITTING)
    assert everywhere.allows(FITTING._replace(name="", namespace=""))


@pytest.mark.parametrize(
    "change",
    [
        {"account": "other"},
        {"verb": "list"},
        {"group": ""},
        {"resource": "deployments/status"},
        {"name": "two"},
        {"name": ""},
        {"namespace": "team"},
        {"namespace": ""},
    ],
    ids=str,
)
def test_a_request_that_differs_in_anything_does_not(change: dict[str, Any]) -> None:
    assert not GRANT.allows(FITTING._replace(**change))


def test_what_was_never_asked_is_unused_and_a_refusal_uses_nothing() -> None:
    other = GRANT._replace(verb="patch")
    uses = Uses([GRANT, other])
    uses.take_in([FITTING, FITTING._replace(verb="patch", allowed=False)])
    assert uses.used == {GRANT}
    assert uses.unused == {other}


@pytest.mark.parametrize("agent", ["", "kubectl/v1.36.3", "Python-urllib/3.13"])
def test_what_a_client_of_a_test_asks_shows_no_use(agent: str) -> None:
    uses = Uses([GRANT])
    uses.take_in([FITTING._replace(agent=agent)])
    assert uses.used == set()
    uses.take_in([FITTING._replace(agent="muster-coordinator")])
    assert uses.used == {GRANT}


def test_of_two_grants_the_narrower_one_is_used() -> None:
    """The wider one is more than is needed, until a request needs it."""
    wide, here, named = (
        GRANT._replace(name="", namespace=""),
        GRANT._replace(name=""),
        GRANT._replace(namespace=""),
    )
    uses = Uses([wide, here, named])
    uses.take_in([FITTING])
    assert uses.unused == {wide, here}
    uses.take_in([FITTING._replace(name="other")])
    assert uses.unused == {wide}
    uses.take_in([FITTING._replace(name="other", namespace="team")])
    assert uses.unused == frozenset()


def test_a_refusal_is_told_with_its_place() -> None:
    uses = Uses([])
    uses.refuse([FITTING, FITTING._replace(verb="delete", allowed=False)], "cluster-3")
    assert uses.refused == {
        "worker: delete deployments.apps one in muster-system (cluster-3)",
    }


def test_what_is_granted_and_refused_is_of_an_api_server_that_starts() -> None:
    """It has not read its roles yet; the same without the grant is a right that is missing."""
    refused = FITTING._replace(allowed=False)
    for grants_there, told in (([GRANT], 0), ([GRANT._replace(name="other")], 1), ([], 1)):
        uses = Uses(grants_there)
        uses.refuse([refused], "cluster-3")
        assert len(uses.refused) == told


# ---- the log


def line(verb: str, decision: str = "allow", **ref: str) -> str:
    event = {
        "kind": "Event",
        "stage": "ResponseComplete",
        "requestURI": "/apis/x?watch=1",
        "userAgent": "muster-worker",
        "verb": verb,
        "user": {"username": f"system:serviceaccount:{HOME}:worker", "groups": []},
        "annotations": {"authorization.k8s.io/decision": decision},
    }
    return json.dumps({**event, "objectRef": ref} if ref else event)


def test_a_line_of_the_log_is_a_request(tmp_path: Path) -> None:
    lines = [
        line("patch", resource="pods", subresource="status", name="a", namespace="team"),
        line("get", "forbid", resource="leases", apiGroup="coordination.k8s.io"),
        line("get"),
    ]
    (tmp_path / "audit.log").write_text("\n".join([*lines, '{"half of a li']))
    assert list(asked(tmp_path)) == [
        request("patch", "pods/status", name="a", namespace="team"),
        request("get", "leases", group="coordination.k8s.io", allowed=False),
        request("get", "/apis/x"),
    ]


def test_a_directory_without_a_log_tells_nothing(tmp_path: Path) -> None:
    assert list(asked(tmp_path)) == []


def test_the_policy_logs_the_accounts_of_one_namespace_alone() -> None:
    ours, rest = audit_policy(HOME)["rules"]
    assert ours["userGroups"] == [f"system:serviceaccounts:{HOME}"]
    assert rest == {"level": "None"}
    # What begins a watch must be there: an API server that is killed never tells of its end.
    assert "ResponseStarted" not in ours["omitStages"]


def test_refusals_count_where_they_are_not_expected(tmp_path: Path) -> None:
    root = tmp_path / "here" / "root"
    root.mkdir(parents=True)
    lines = [line("list", "forbid", resource="secrets"), line("get", resource="pods")]
    (root / "audit.log").write_text("".join(f"{each}\n" for each in lines))
    reading = Grant("ClusterRole r", "worker", "get", "", "pods", "", "")
    auditor = Auditor(HOME, Uses([reading]))
    auditor.take_in(root, refusals_expected=True)
    assert auditor.uses.refused == set()
    assert auditor.uses.used == {reading}
    auditor.take_in(root, refusals_expected=False)
    assert auditor.uses.refused == {"worker: list secrets (here)"}

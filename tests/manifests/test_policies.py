"""The admission policies ask what RBAC answers, name our keys, and are as narrow as can be."""

import re
from pathlib import Path

import pytest

from kube.objects import names
from tests.manifests.base import BASE, MANIFESTS, Json, documents, one

OF_ACCOUNTS = {
    "muster-certs": BASE / "certs-policy.yaml",
    "muster-wrapper": MANIFESTS / "app-wrapper" / "wrapper-policy.yaml",
    "muster-redis": MANIFESTS / "redis" / "redis-policy.yaml",
}
"""What bounds an account of ours, by its name."""

OF_TENANTS = (
    BASE / "policies.yaml",
    MANIFESTS / "app-wrapper" / "policies.yaml",
    MANIFESTS / "node-name" / "policy.yaml",
)
OF_REDIS = MANIFESTS / "redis" / "policies.yaml"
OF_CLUSTERS = MANIFESTS / "dispatcher" / "policies.yaml"
"""They let no right pass: what they refuse is a slip, or no one's to do."""
FILES = (*OF_TENANTS, *OF_ACCOUNTS.values(), OF_REDIS, OF_CLUSTERS, BASE / "queue-policy.yaml")
POLICIES = [each for path in FILES for each in documents(path) if "Binding" not in each["kind"]]
BINDINGS = [each for path in FILES for each in documents(path) if "Binding" in each["kind"]]
RELEASE = "!authorizer.group('muster.dev').resource('gangs').check('release').allowed()"
BIND = "!authorizer.group('').resource('pods').subresource('binding').check('create').allowed()"

GUARDS = [each for path in OF_TENANTS for each in documents(path) if "Binding" not in each["kind"]]

every_policy = pytest.mark.parametrize("found", POLICIES, ids=lambda o: o["metadata"]["name"])
every_guard = pytest.mark.parametrize("found", GUARDS, ids=lambda o: o["metadata"]["name"])


def named(name: str) -> Json:
    (found,) = (each["spec"] for each in POLICIES if each["metadata"]["name"] == name)
    assert isinstance(found, dict)
    return found


def conditions(spec: Json) -> list[str]:
    return [" ".join(each["expression"].split()) for each in spec["matchConditions"]]


@every_policy
def test_what_cannot_be_judged_is_refused(found: Json) -> None:
    assert found["spec"]["failurePolicy"] == "Fail"


@every_guard
def test_rbac_is_asked_last_and_for_the_whole_cluster(found: Json) -> None:
    """A right in one namespace does not do: cluster-admin is bound in namespaces of tenants."""
    *_, last = conditions(found["spec"])
    assert last in (RELEASE, BIND)
    assert not any("authorizer" in each for each in conditions(found["spec"])[:-1])


@every_policy
def test_no_account_of_ours_is_named(found: Json) -> None:
    """Muster may be in another namespace, where its accounts have other names."""
    assert "muster-coordinator" not in str(found)
    assert "serviceaccount:muster" not in str(found)


@every_guard
def test_the_systems_namespaces_and_our_own_are_left_out(found: Json) -> None:
    matched = found["spec"]["matchConstraints"]
    (rule,) = matched["resourceRules"]
    if rule["apiGroups"] == [names.GROUP]:
        return  # there are none of them there
    (selector,) = matched["namespaceSelector"]["matchExpressions"]
    assert (selector["key"], selector["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
    assert selector["values"] == ["kube-system", names.DEFAULT_NAMESPACE]


@every_policy
def test_each_refusal_has_words_of_its_own_that_say_what_is_allowed(found: Json) -> None:
    for each in found["spec"]["validations"]:
        assert each["reason"] == "Forbidden"
        assert "allowed: " in " ".join(each["messageExpression"].split())


@pytest.mark.parametrize("account", OF_ACCOUNTS)
def test_an_account_of_ours_is_known_by_the_end_of_its_name(account: str) -> None:
    """Muster may be in another namespace; the condition that leaves all others out comes first."""
    (found, _) = documents(OF_ACCOUNTS[account])
    user = "request.userInfo.username"
    assert conditions(found["spec"])[0] == (
        f"{user}.startsWith('system:serviceaccount:') && {user}.endsWith(':{account}')"
    )
    files = sorted(MANIFESTS.rglob("*rbac.yaml"))
    every = [each for path in files for each in documents(path)]
    assert account in [
        each["metadata"]["name"] for each in every if each["kind"] == "ServiceAccount"
    ]


def test_what_may_change_webhook_configurations_is_bounded() -> None:
    """Each account with such a right has a policy, which is asked about both kinds."""
    bound: set[str] = set()
    for path in MANIFESTS.rglob("*rbac.yaml"):
        for role in documents(path):
            for rule in role.get("rules") or ():
                writes = {*rule["verbs"]} - {"get", "list", "watch"}
                if writes and "admissionregistration.k8s.io" in rule["apiGroups"]:
                    bound.add(role["metadata"]["name"].removesuffix("-app-wrapper"))
                    assert writes == {"patch"}
    assert bound == {"muster-certs"}
    (rule,) = named("muster-certs")["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["apiVersions"]) == (["UPDATE"], ["*"])
    configurations = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    assert rule["resources"] == configurations


def test_the_wrapper_is_kept_out_of_the_systems_namespace_and_our_own() -> None:
    matched = named("muster-wrapper")["matchConstraints"]
    (selector,) = matched["namespaceSelector"]["matchExpressions"]
    assert (selector["key"], selector["operator"]) == ("kubernetes.io/metadata.name", "In")
    assert selector["values"] == ["kube-system", names.DEFAULT_NAMESPACE]
    (rule,) = matched["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["CREATE", "DELETE"], ["*/*"])
    assert (rule["apiGroups"], rule["apiVersions"]) == (["*"], ["*"])


def test_all_queues_are_asked_about_those_below() -> None:
    spec = named("muster-queues")
    assert spec["paramKind"] == {"apiVersion": names.API_VERSION, "kind": "GangQueue"}
    (bound,) = (e["spec"] for e in BINDINGS if e["spec"]["policyName"] == "muster-queues")
    assert bound["paramRef"] == {"selector": {}, "parameterNotFoundAction": "Allow"}


def test_each_policy_is_bound_to_deny() -> None:
    bound = {each["spec"]["policyName"]: each["spec"]["validationActions"] for each in BINDINGS}
    assert bound == {each["metadata"]["name"]: ["Deny"] for each in POLICIES}
    assert [each["metadata"]["name"] for each in BINDINGS] == list(bound)


def test_the_reserved_keys_of_pods_are_those_that_the_coordinator_writes() -> None:
    (condition, _) = conditions(named("muster-pods"))
    (changed,) = (v for v in named("muster-pods")["variables"] if v["name"] == "changed")
    for text in (condition, changed["expression"]):
        (listed,) = re.findall(r"\['(muster[^\]]*)'\]", text)
        assert {*listed.split("', '")} == {names.FENCE, names.RELEASED, names.TOLD}
    assert f"g.name == '{names.GATE}'" in condition


def test_a_binding_may_not_write_what_may_not_be_changed_on_pods() -> None:
    """The API server copies its annotations and labels onto the pod."""
    (condition, _) = conditions(named("muster-bindings"))
    annotations, labels = condition.split("||")
    (of_pods, _) = conditions(named("muster-pods"))
    (of_wrapped, _) = conditions(named("muster-wrapped-pods"))
    (by_binding, _) = conditions(named("muster-wrapped-bindings"))
    key = re.compile(r"'((?:muster\.dev|ray\.io)/[^']*)'")
    assert {*key.findall(annotations)} == {names.FENCE, names.RELEASED, names.TOLD}
    assert {*key.findall(labels)} == {names.RAY_NODE_TYPE}
    assert {*key.findall(by_binding)} == {*key.findall(of_wrapped)}
    assert {*key.findall(of_pods)} <= {*key.findall(condition), names.GATE}


def test_the_labels_of_wrapped_pods_are_those_that_name_an_app_wrapper() -> None:
    (condition, _) = conditions(named("muster-wrapped-pods"))
    labels = (
        names.APP_WRAPPER,
        names.APP_WRAPPER_UID,
        names.APP_WRAPPER_GROUP,
        names.POD_SET,
    )
    assert {*re.findall(r"'(muster\.dev/[^']*)'", condition)} == {*labels}


def test_only_what_is_written_of_pods_that_exist_is_judged() -> None:
    """With their status, by which labels and annotations can be written too."""
    (rule,) = named("muster-pods")["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["UPDATE"], ["pods", "pods/status"])
    (rule,) = named("muster-wrapped-pods")["matchConstraints"]["resourceRules"]
    assert (rule["operations"], rule["resources"]) == (["UPDATE"], ["pods", "pods/status"])
    for name in ("muster-bindings", "muster-wrapped-bindings"):
        (rule,) = named(name)["matchConstraints"]["resourceRules"]
        assert (rule["operations"], rule["resources"]) == (["CREATE"], ["pods/binding", "bindings"])
    (rule,) = named("muster-gangs")["matchConstraints"]["resourceRules"]
    assert rule["resources"] == ["gangs", "gangs/status", "gangqueues/status"]


def test_the_coordinator_alone_may_release_gangs() -> None:
    granted: set[tuple[str, str]] = set()
    for path in sorted(Path(MANIFESTS).rglob("*rbac.yaml")):
        for role in documents(path):
            verbs = {verb for rule in role.get("rules") or () for verb in rule["verbs"]}
            if "release" in verbs:
                granted.add((role["kind"], role["metadata"]["name"]))
    assert granted == {("ClusterRole", "muster-coordinator")}
    assert one("ClusterRoleBinding", "muster-coordinator")["roleRef"]["kind"] == "ClusterRole"


def test_the_component_for_node_names_is_whole() -> None:
    (component,) = documents(MANIFESTS / "node-name" / "kustomization.yaml")
    assert (component["kind"], component["resources"]) == ("Component", ["policy.yaml"])

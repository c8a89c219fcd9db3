"""The component with the page: it lists what the page shows, and is reached by a forward alone."""

from tests.manifests.test_manifests import MANIFESTS, Json, documents

DASHBOARD = MANIFESTS / "dashboard"


def of_kind(kind: str) -> Json:
    (found,) = [
        each
        for path in sorted(DASHBOARD.glob("*.yaml"))
        for each in documents(path)
        if each["kind"] == kind
    ]
    return found


def test_the_component_names_every_file() -> None:
    named = {path.name for path in DASHBOARD.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(of_kind("Component")["resources"]) == named


def test_it_may_list_what_the_page_shows_and_nothing_else() -> None:
    granted = {
        (group, resource, verb)
        for rule in of_kind("ClusterRole")["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted == {
        ("muster.dev", "gangs", "list"),
        ("muster.dev", "gangqueues", "list"),
        ("", "nodes", "list"),
        ("", "pods", "list"),
    }
    account = of_kind("ServiceAccount")["metadata"]
    (subject,) = of_kind("ClusterRoleBinding")["subjects"]
    assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])


def test_it_runs_the_command_and_opens_no_port() -> None:
    pod = of_kind("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == ["cli", "dashboard"]
    assert not {"ports", "livenessProbe", "readinessProbe"} & container.keys()
    assert pod["serviceAccountName"] == of_kind("ServiceAccount")["metadata"]["name"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }

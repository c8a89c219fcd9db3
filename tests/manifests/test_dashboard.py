"""The component with the page: it has no rights, and is reached over TLS alone."""

from tests.manifests.base import MANIFESTS, Json, documents

DASHBOARD = MANIFESTS / "dashboard"
FOUND = [each for path in sorted(DASHBOARD.glob("*.yaml")) for each in documents(path)]


def of_kind(kind: str) -> Json:
    (found,) = [each for each in FOUND if each["kind"] == kind]
    return found


def pod() -> Json:
    found: Json = of_kind("Deployment")["spec"]["template"]["spec"]
    return found


def test_the_component_names_every_file() -> None:
    named = {path.name for path in DASHBOARD.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(of_kind("Component")["resources"]) == named


def test_it_has_an_account_without_any_right_and_no_token_of_it() -> None:
    assert {each["kind"] for each in FOUND} == {
        "Component",
        "Deployment",
        "Service",
        "ServiceAccount",
    }
    account = of_kind("ServiceAccount")
    assert pod()["serviceAccountName"] == account["metadata"]["name"]
    assert account["automountServiceAccountToken"] is False
    assert pod()["automountServiceAccountToken"] is False
    assert [each["name"] for each in pod()["volumes"]] == ["tls", "api-server"]
    assert pod()["volumes"][1]["configMap"]["name"] == "kube-root-ca.crt"


def test_it_serves_people_over_tls_and_nothing_else() -> None:
    (container,) = pod()["containers"]
    assert container["args"][:3] == ["cli", "dashboard", "--in-cluster"]
    (port,) = container["ports"]
    assert f"--port={port['containerPort']}" in container["args"]
    (served,) = of_kind("Service")["spec"]["ports"]
    assert (served["port"], served["targetPort"]) == (443, port["name"])
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    for option, volume in (("certificate", "tls"), ("key", "tls"), ("api-server-ca", "api-server")):
        (said,) = [each for each in container["args"] if each.startswith(f"--{option}=")]
        assert said.partition("=")[2].startswith(mounts[volume])


def test_it_is_asked_for_a_file_of_the_page_whether_it_is_ready() -> None:
    """A file needs no token, and the kubelet has none."""
    (container,) = pod()["containers"]
    asked = container["readinessProbe"]["httpGet"]
    assert (asked["path"], asked["scheme"]) == ("/", "HTTPS")

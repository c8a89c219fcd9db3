"""Installed into another namespace, nothing of Muster asks for the one that it is usually in."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from certs.chain import service_names
from charts.builds import MANIFESTS, Json, Key, key
from charts.worlds import SWITCHES, World, components
from charts.writing import documents
from testbed.build import build
from testbed.recipes import DEFAULT_KUBERAY, DEFAULT_KUBERNETES, recipes_for
from webhook.settings import Settings

# kubectl is built with the control plane; nothing is started.
pytestmark = pytest.mark.controlplane

OWN, OTHER = "muster-system", "team-gangs"
NAMES = frozenset(switch.name for switch in SWITCHES)
WORLDS: dict[str, World] = {
    "most": NAMES - {"mutating-admission-policy", "scheduler"},
    "self-signed": NAMES - {"mutating-admission-policy", "scheduler", "cert-manager"},
    "scheduler": frozenset({"scheduler"}),
    "scheduler-cert-manager": frozenset({"scheduler", "cert-manager"}),
    "no-webhook": frozenset({"mutating-admission-policy"}),
}


def built(folder: Path, world: World) -> dict[Key, Json]:
    """As docs/install.md says: an overlay with `namespace` and the transformer."""
    kubectl = build(recipes_for(DEFAULT_KUBERNETES, DEFAULT_KUBERAY), print).program("kubectl")
    manifests = os.path.relpath(MANIFESTS, folder.resolve())
    overlay = {
        "namespace": OTHER,
        "resources": [f"{manifests}/base"],
        "components": [f"{manifests}/{each}" for each in components(world)],
        "transformers": [f"{manifests}/own-namespace"],
        "images": [{"name": "muster", "newTag": "dev"}],
    }
    (folder / "kustomization.yaml").write_text(json.dumps(overlay))
    command = [str(kubectl), "kustomize", str(folder)]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {key(each): each for each in documents(text)}


@pytest.fixture(scope="module", params=sorted(WORLDS))
def found(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[Key, Json]:
    return built(tmp_path_factory.mktemp(request.param), WORLDS[request.param])


def test_nothing_names_the_namespace_that_is_not_there(found: dict[Key, Json]) -> None:
    for at, each in found.items():
        assert OWN not in json.dumps(each), at
        if each["kind"] != "Namespace" and at[1] != "kube-system":
            assert at[1] in ("", OTHER), at
    assert ("Namespace", "", OTHER) in found


def test_roles_are_bound_to_the_accounts_that_are_there(found: dict[Key, Json]) -> None:
    accounts = {name for kind, _, name in found if kind == "ServiceAccount"}
    bindings = [each for at, each in found.items() if at[0].endswith("RoleBinding")]
    subjects = [subject for each in bindings for subject in each["subjects"]]
    assert len(subjects) > 5 or len(bindings) < 6
    for each in subjects:
        if each["kind"] == "ServiceAccount":
            assert each["namespace"] == OTHER
            assert each["name"] in accounts


def test_webhooks_call_the_service_that_is_there(found: dict[Key, Json]) -> None:
    for at, each in found.items():
        for webhook in each.get("webhooks", ()):
            called = webhook["clientConfig"]["service"]
            assert ("Service", called["namespace"], called["name"]) in found, at


def test_its_own_namespace_is_never_gated(found: dict[Key, Json]) -> None:
    assert [*_left_out(found)]
    for at, values in _left_out(found):
        assert values == ["kube-system", OTHER], at


def _left_out(found: dict[Key, Json]) -> Iterator[tuple[Key, list[str]]]:
    for at, each in found.items():
        matching = each.get("spec", {}).get("matchConstraints", {})
        for selecting in (*each.get("webhooks", ()), matching):
            expressions = selecting.get("namespaceSelector", {}).get("matchExpressions", ())
            yield from ((at, expression["values"]) for expression in expressions)


def test_certificates_are_for_the_names_that_are_called(found: dict[Key, Json]) -> None:
    for (kind, _, name), each in found.items():
        if kind == "Certificate" and name in ("muster-webhook", "muster-extender"):
            assert f"{name}.{OTHER}.svc" in each["spec"]["dnsNames"]
            assert {*each["spec"]["dnsNames"]} <= {*service_names(name, OTHER).dns}
        if kind == "ConfigMap" and name == "muster-scheduler":
            (called,) = re.findall(r"serverName: (\S+)", each["data"]["configuration.yaml"])
            assert called in service_names("muster-extender", OTHER).dns
            certificate = found.get(("Certificate", OTHER, "muster-extender"))
            assert certificate is None or called in certificate["spec"]["dnsNames"]


def test_programs_are_told_the_namespace_by_their_pod(found: dict[Key, Json]) -> None:
    """The Lease of the scheduler, the wrapper's account: names that stand in no reference."""
    told = [*_told(found)]
    scheduler = [text for text in told if "--leader-elect-resource-namespace" in text]
    assert scheduler == (
        [f"--leader-elect-resource-namespace={OTHER}"]
        if ("Deployment", OTHER, "muster-scheduler") in found
        else []
    )
    wrapper = [text for text in told if text.endswith(":muster-wrapper")]
    if ("ServiceAccount", OTHER, "muster-wrapper") in found:
        assert wrapper == [f"system:serviceaccount:{OTHER}:muster-wrapper"]
        assert Settings(wrapper_account=wrapper[0]).wrapper_account == wrapper[0]


def _told(found: dict[Key, Json]) -> Iterator[str]:
    """Commands and variables, with what the kubelet puts in for variables before them."""
    for at, each in found.items():
        if at[0] != "Deployment":
            continue
        for container in each["spec"]["template"]["spec"]["containers"]:
            known: dict[str, str] = {}
            for variable in container.get("env", ()):
                field = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
                text = OTHER if field == "metadata.namespace" else variable.get("value", "")
                known[variable["name"]] = _expanded(text, known)
            yield from known.values()
            yield from (
                _expanded(text, known)
                for text in (*container.get("command", ()), *container.get("args", ()))
            )


def _expanded(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda match: known.get(match[1], match[0]), text)

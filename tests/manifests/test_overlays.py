"""The overlays are the base and components beside it, and docs/install.md names each."""

import re

import pytest
import yaml

from kube.objects import names
from tests.manifests.base import MANIFESTS, Json, documents
from tests.packaging.tree import ROOT

OVERLAYS = {
    "self-signed": [],
    "cert-manager": ["cert-manager"],
    "ha": ["ha"],
    "extender": ["extender"],
    "extender-all-resources": ["extender", "guard-extender"],
    "scheduler": ["scheduler"],
    "mutating-admission-policy": ["mutating-admission-policy"],
}
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def components() -> set[str]:
    """All that an overlay may name beside the base."""
    found = {path.parent: documents(path)[0] for path in MANIFESTS.glob("*/kustomization.yaml")}
    return {path.name for path, each in found.items() if each["kind"] == "Component"}


def test_there_are_no_others() -> None:
    assert {path.name for path in (MANIFESTS / "overlays").iterdir()} == {*OVERLAYS}


@pytest.mark.parametrize("name", sorted(OVERLAYS))
def test_an_overlay_is_the_base_and_components(name: str) -> None:
    (found,) = documents(MANIFESTS / "overlays" / name / "kustomization.yaml")
    assert found["resources"] == ["../../base"]
    assert found.get("components", []) == [f"../../{each}" for each in OVERLAYS[name]]
    # One name for the image of all programs, for an overlay of the operator's to replace.
    assert found["images"] == [{"name": "muster", "newTag": "dev"}]


@pytest.mark.parametrize("name", sorted(OVERLAYS))
def test_the_documentation_has_a_row_for_each(name: str) -> None:
    (row,) = re.findall(rf"^\| `{name}` \|(.*)\|$", INSTALL, re.MULTILINE)
    assert [cell for cell in row.split("|") if not cell.strip()] == []
    assert row.count("|") == 2


def test_the_documentation_orders_all_components() -> None:
    (text,) = re.findall(r"^```yaml\n(resources: .*?)^```", INSTALL, re.MULTILINE | re.DOTALL)
    named = [each.removeprefix("../manifests/") for each in yaml.safe_load(text)["components"]]
    # The last two are named as alternatives of others, in comments.
    assert {*named} == components() - {"scheduler", "mutating-admission-policy"}
    assert "transformers: [../manifests/own-namespace]" in INSTALL
    assert text.count("../manifests/scheduler") == 1
    assert text.count("../manifests/mutating-admission-policy") == 1


# ---- a component that is taken out again


def added(component: str) -> set[tuple[str, str, str]]:
    """Kind, name and namespace of what is there only with a component."""
    folder = MANIFESTS / component
    (found,) = documents(folder / "kustomization.yaml")
    objects = (each for name in found["resources"] for each in documents(folder / name))
    return {
        (each["kind"].lower(), each["metadata"]["name"], each["metadata"].get("namespace", ""))
        for each in objects
    }


def deleted(text: str) -> set[tuple[str, str, str]]:
    """What the commands of a part of the documentation delete."""
    lines = text.replace("\\\n", " ")
    found: set[tuple[str, str, str]] = set()
    for within, named in re.findall(
        r"kubectl(?: -n (\S+))? delete --ignore-not-found ([^\n`]+)", lines
    ):
        for each in named.split():
            kind, name = each.split("/")
            found.add((kind, name, within))
    return found


def test_the_documentation_deletes_all_that_app_wrappers_add() -> None:
    page = (ROOT / "docs" / "removal.md").read_text(encoding="utf-8")
    text = page.partition("\n## Taking AppWrappers out again\n")[2].partition("\n## ")[0]
    commands, _, alone = text.rpartition("```")
    lease = {("lease", "muster-wrapper", "muster-system")}  # the program's own
    assert deleted(commands) == added("app-wrapper") | added("wrapped-secrets") | lease
    assert deleted(alone) == added("wrapped-secrets")


def test_the_documentation_deletes_all_that_redis_adds() -> None:
    page = (ROOT / "docs" / "removal.md").read_text(encoding="utf-8")
    text = page.partition("\n## Taking the built-in Redis out again\n")[2].partition("\n## ")[0]
    by_the_program = {
        ("lease", "muster-redis", "muster-system"),
        ("configmap", "muster-redis-report", "muster-system"),
        ("secret", "muster-redis-keys", "muster-system"),
        ("secret", "muster-redis-passwords", "muster-system"),
    }
    assert deleted(text) == added("redis") | by_the_program


# ---- gates without a webhook


def policy() -> Json:
    (found, binding) = documents(MANIFESTS / "mutating-admission-policy" / "policy.yaml")
    assert binding["spec"] == {"policyName": found["metadata"]["name"]}
    spec: Json = found["spec"]
    return spec


def webhook() -> Json:
    (found,) = documents(MANIFESTS / "base" / "webhook-configuration.yaml")
    (gate,) = [each for each in found["webhooks"] if each["name"] == "gate.muster.dev"]
    assert isinstance(gate, dict)
    return gate


def test_the_policy_is_asked_about_the_pods_that_the_webhook_is_asked_about() -> None:
    constraints, gate = policy()["matchConstraints"], webhook()
    assert constraints == {
        "matchPolicy": gate["matchPolicy"],
        "resourceRules": gate["rules"],
        "objectSelector": gate["objectSelector"],
        "namespaceSelector": gate["namespaceSelector"],
    }
    assert policy()["failurePolicy"] == gate["failurePolicy"]
    assert policy()["reinvocationPolicy"] == gate["reinvocationPolicy"]


def test_the_policy_names_the_gate_as_the_code_does() -> None:
    (mutation,) = policy()["mutations"]
    (named,) = {*re.findall(r"muster\.dev/\w+", mutation["jsonPatch"]["expression"])}
    assert named == names.GATE
    (gated,) = [each for each in policy()["matchConditions"] if each["name"] == "not-gated"]
    assert f"'{names.GATE}'" in gated["expression"]


def test_no_parameter_decides_which_pods_are_gated() -> None:
    """What the API server has not heard of yet could not match, and the pod would run ungated."""
    assert "paramKind" not in policy()

"""Helm renders the chart to what kustomize builds, whatever is switched on."""

import json
import random
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from charts.builds import MANIFESTS, Builds, Key, key
from charts.files import CHART, written
from charts.worlds import EXCLUSIONS, SWITCHES, Exclusion, World, components, is_allowed, worlds_of
from charts.writing import documents
from testbed.build import build
from testbed.options import Options
from testbed.pytest_plugin import MakeCluster
from testbed.recipes import DEFAULT_KUBERAY, DEFAULT_KUBERNETES, recipes_for
from testbed.waiting import wait_until
from tests.helm import ON, helm, refused, rendered, switched
from tests.manifests.test_namespace import OTHER, WORLDS, built

# The first of them builds Helm, which takes minutes.
pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

Json = dict[str, Any]
NAMES = [switch.name for switch in SWITCHES]
GUARD = "coordinator.settings.GUARD=Extender"


@pytest.fixture(scope="module")
def kubectl() -> Path:
    recipes = recipes_for(DEFAULT_KUBERNETES, DEFAULT_KUBERAY)
    return build(recipes, print).program("kubectl")


@pytest.fixture(scope="module")
def builds(kubectl: Path) -> Builds:
    return Builds(kubectl)


def comparable(found: Mapping[Key, Json]) -> dict[Key, Json]:
    """Without the namespace, which Helm makes, and the order of variables, which says nothing."""
    return {at: _unordered(each) for at, each in found.items() if at[0] != "Namespace"}


def _unordered(found: Json) -> Json:
    if found["kind"] != "Deployment":
        return found
    changed: Json = json.loads(json.dumps(found))
    for container in changed["spec"]["template"]["spec"]["containers"]:
        variables = container.pop("env", None) or []
        container["env"] = {each["name"]: each for each in variables}
        assert len(container["env"]) == len(variables), f"a variable twice: {variables}"
    return changed


def assert_same(chart: Mapping[Key, Json], overlay: Mapping[Key, Json]) -> None:
    one, other = comparable(chart), comparable(overlay)
    assert one.keys() == other.keys()
    for at in sorted(one):
        assert one[at] == other[at], at


OVERLAYS: dict[str, tuple[str, ...]] = {
    "self-signed": (),
    "cert-manager": (ON["cert-manager"],),
    "ha": (ON["ha"],),
    "extender": (ON["extender"],),
    "extender-all-resources": (ON["extender"], GUARD),
    "scheduler": (ON["scheduler"],),
    "mutating-admission-policy": (ON["mutating-admission-policy"],),
}


def test_there_are_no_other_overlays() -> None:
    assert {path.name for path in (MANIFESTS / "overlays").iterdir()} == {*OVERLAYS}


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_chart_makes_each_overlay(name: str, kubectl: Path) -> None:
    command = [str(kubectl), "kustomize", str(MANIFESTS / "overlays" / name)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    overlay = {key(each): each for each in documents(text)}
    assert_same(rendered("crds.keep=false", *OVERLAYS[name]), overlay)


def combinations() -> Iterator[World]:
    """Each switch alone, as many as go together, and some by chance."""
    yield from (world for world in worlds_of(NAMES, most=1) if world)
    together = frozenset(NAMES) - {"mutating-admission-policy"}
    yield from (together - {"scheduler"}, together - {"extender"})
    yield frozenset(NAMES) - {"scheduler", "app-wrapper", "cert-manager", "redis", "dispatcher"}
    draw = random.Random(1)
    drawn = (frozenset(n for n in NAMES if draw.random() < 0.5) for _ in range(200))
    yield from [world for world in drawn if is_allowed(world)][:25]


@pytest.mark.parametrize("world", [*combinations()], ids=lambda w: "+".join(sorted(w)) or "none")
def test_the_chart_makes_what_components_make(world: World, builds: Builds) -> None:
    assert_same(rendered("crds.keep=false", *switched(world)), builds.of(world))


def test_every_component_is_in_the_chart_or_a_value_of_it() -> None:
    """The extender's guard is a setting, and cert-manager's part for the extender follows it."""
    there = {path.parent.name for path in MANIFESTS.glob("*/kustomization.yaml")} - {"base"}
    named = {*components(frozenset(NAMES))}
    # The chart's namespace is that of the release.
    assert named == there - {"guard-extender", "own-namespace"}


def test_the_chart_is_what_is_written(kubectl: Path) -> None:
    for path, text in written(kubectl).items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run `make chart`"


def test_helm_finds_nothing_in_the_chart() -> None:
    done = helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout


# ---- values


def deployment(found: Mapping[Key, Json], program: str, namespace: str = "muster-system") -> Json:
    spec: Json = found["Deployment", namespace, f"muster-{program}"]["spec"]
    return spec


def pod(found: Mapping[Key, Json], program: str) -> Json:
    spec: Json = deployment(found, program)["template"]["spec"]
    return spec


def environment(found: Mapping[Key, Json], program: str) -> dict[str, str]:
    (container,) = pod(found, program)["containers"]
    named = [each["name"] for each in container["env"]]
    assert len(named) == len({*named})
    return {each["name"]: each.get("value", "") for each in container["env"]}


def test_the_namespace_is_the_releases(tmp_path: Path) -> None:
    everything = frozenset(NAMES) - {"mutating-admission-policy", "scheduler"}
    for world in (everything, frozenset(("scheduler",)), frozenset(("mutating-admission-policy",))):
        found = rendered(*switched(world), namespace="team-gangs")
        for at, each in found.items():
            assert "muster-system" not in json.dumps(each), at
    for name, world in WORLDS.items():
        (folder := tmp_path / name).mkdir()
        assert_same(
            rendered("crds.keep=false", *switched(world), namespace=OTHER), built(folder, world)
        )
    accounts = found["ClusterRoleBinding", "", "muster-coordinator"]["subjects"]
    assert [each["namespace"] for each in accounts] == ["team-gangs"]


def test_more_namespaces_are_closed_to_the_wrapper() -> None:
    value = "appWrappers.closedNamespaces"
    found = rendered(ON["app-wrapper"], f"{value}[0]=argocd", f"{value}[1]=cert-manager")
    policy = found["ValidatingAdmissionPolicy", "", "muster-wrapper"]
    selected = policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert [each["values"] for each in selected] == [
        ["kube-system", "muster-system", "argocd", "cert-manager"]
    ]


def test_what_values_say_is_in_the_objects() -> None:
    found = rendered(
        "image.repository=registry.example.com/muster",
        "image.pullPolicy=Always",
        "image.pullSecrets[0].name=pull",
        "webhook.replicas=0",
        "coordinator.replicas=5",
        "coordinator.resources.requests.cpu=2",
        "priorityClassName=",
        "nodeSelector.pool=system",
        "tolerations[0].operator=Exists",
        ON["ha"],
    )
    assert [deployment(found, each)["replicas"] for each in ("webhook", "coordinator")] == [0, 5]
    spec = pod(found, "coordinator")
    (container,) = spec["containers"]
    assert container["image"] == "registry.example.com/muster:dev"
    assert container["imagePullPolicy"] == "Always"
    assert container["resources"]["requests"] == {"cpu": 2, "memory": "512Mi"}
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert "priorityClassName" not in spec
    assert spec["nodeSelector"] == {"pool": "system"}
    assert spec["tolerations"] == [{"operator": "Exists"}]


def test_settings_become_variables_and_replace_those_of_the_manifests() -> None:
    found = rendered(
        "coordinator.settings.WAITING_PER_NAMESPACE=1000000",
        "coordinator.settings.GPU_RESOURCES={nvidia.com/gpu,amd.com/gpu}",
        "coordinator.settings.PROFILES[0].schedulerName=other",
        "webhook.settings.SHUTDOWN_DELAY_SECONDS=9",
        ON["scheduler"],
        as_json=("coordinator.settings.DEBOUNCE=0.5",),
    )
    told = environment(found, "coordinator")
    assert told["MUSTER_COORDINATOR_WAITING_PER_NAMESPACE"] == "1000000"
    assert told["MUSTER_COORDINATOR_DEBOUNCE"] == "0.5"
    assert told["MUSTER_COORDINATOR_GPU_RESOURCES"] == '["nvidia.com/gpu","amd.com/gpu"]'
    assert told["MUSTER_COORDINATOR_PROFILES"] == '[{"schedulerName":"other"}]'
    assert environment(found, "webhook")["MUSTER_WEBHOOK_SHUTDOWN_DELAY_SECONDS"] == "9"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("coordinator.replica=3", "replica"),
        ("coordinator.replicas=-1", "coordinator/replicas"),
        ("coordinator.settings.BIND_PATIENC=3", "BIND_PATIENC"),
        ("coordinator.settings.BIND_PATIENCE=soon", "BIND_PATIENCE"),
        ("coordinator.settings.BIND_PATIENCE=0", "BIND_PATIENCE"),
        ("coordinator.settings.GUARD=Nothing", "GUARD"),
        ("coordinator.settings.NAMESPACE=other", "NAMESPACE"),
        ("gating=webhook", "gating"),
        ("certificates=None", "certificates"),
        ("extender.enabled=yes please", "extender/enabled"),
        ("coordinator.resources.request.cpu=1", "request"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(value: str, said: str) -> None:
    assert said in refused(value).replace(".", "/").replace("coordinator/settings/", "")


@pytest.mark.parametrize("excluded", EXCLUSIONS, ids=lambda each: "+".join(sorted(each.pair)))
def test_values_that_exclude_each_other_are_refused(excluded: Exclusion) -> None:
    assert excluded.message in refused(*switched(excluded.pair))


def test_definitions_stay_unless_values_say_otherwise() -> None:
    at = ("CustomResourceDefinition", "", "gangs.muster.dev")
    assert rendered()[at]["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert at not in rendered("crds.install=false")


# ---- a real API server


@pytest.mark.controlplane
def test_a_release_is_installed_upgraded_and_removed(make_cluster: MakeCluster) -> None:
    bare = make_cluster(Options(kuberay=False, kwok=False, scheduler=False))
    release = ("muster", str(CHART), "--namespace", "gangs")
    told = ("--kubeconfig", str(bare.kubeconfig))
    on = [part for each in ("extender", "app-wrapper") for part in ("--set", ON[each])]
    assert_done(helm("install", *release, "--create-namespace", *told))
    assert_done(helm("upgrade", *release, *on, *told))
    assert "muster-extender" in bare.kubectl("-n", "gangs", "get", "deployments", "-o", "name")
    removed = ("uninstall", "muster", "--namespace", "gangs", *told)
    assert_done(helm(*removed))  # with --wait it would wait for what is kept
    kinds = "clusterrole,mutatingwebhookconfiguration,deployment"
    wait_until(lambda: "muster" not in bare.kubectl("get", kinds, "-A", "-o", "name"), "no rest")
    assert "gangs.muster.dev" in bare.kubectl("get", "crd", "-o", "name")
    # What was kept is taken up again.
    assert_done(helm("install", *release, "--take-ownership", "--set", "crds.keep=false", *told))
    assert_done(helm(*removed))
    wait_until(lambda: "muster" not in bare.kubectl("get", "crd", "-o", "name"), "no definitions")


def assert_done(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr

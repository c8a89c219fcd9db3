"""RayClusters that were written for KubeRay's Volcano say to Muster what they say to Volcano."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kube.objects import names
from testbed.errors import TestbedError
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, group, ray_cluster
from tests.packaging.tree import ROOT

POLICY = ROOT / "manifests" / "volcano-labels" / "policy.yaml"
QUEUE, PRIORITY = "volcano.sh/queue-name", "ray.io/priority-class-name"
MODE = "volcano.sh/network-topology-mode"
TIER = "volcano.sh/network-topology-highest-tier-allowed"
ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True)
class Case:
    """What a RayCluster says, and which labels and annotations of Muster it is to have."""

    labels: Mapping[str, str]
    expected_labels: Mapping[str, str] = field(default_factory=dict)
    expected_annotations: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


OPTED_IN = {names.OPT_IN: "true"}
CASES = {
    "queue": Case({QUEUE: "research"}, {**OPTED_IN, names.QUEUE: "research"}),
    "own queue stays": Case(
        {QUEUE: "research", names.QUEUE: "mine"}, {**OPTED_IN, names.QUEUE: "mine"}
    ),
    "priority": Case({PRIORITY: "high"}, {**OPTED_IN, names.PRIORITY_CLASS: "high"}),
    "hard": Case({MODE: "hard"}, OPTED_IN, {names.TOPOLOGY_REQUIRED: ZONE}),
    "soft": Case({MODE: "soft"}, OPTED_IN, {names.TOPOLOGY_PREFERRED: ZONE}),
    "a tier alone": Case({TIER: "2"}, OPTED_IN, {names.TOPOLOGY_PREFERRED: ZONE}),
    "beside another annotation": Case(
        {MODE: "hard"}, OPTED_IN, {names.TOPOLOGY_REQUIRED: ZONE}, {"team": "a"}
    ),
    "own topology stays": Case(
        {MODE: "hard"},
        OPTED_IN,
        {names.TOPOLOGY_REQUIRED: "rack"},
        {names.TOPOLOGY_REQUIRED: "rack"},
    ),
    "opted out": Case({QUEUE: "research", names.OPT_IN: "false"}, {names.OPT_IN: "false"}),
    "nothing for volcano": Case({"team": "a"}),
}


@pytest.fixture
def policy(plot: Plot, tmp_path: Path) -> Iterator[None]:
    """The shipped policy and its binding, in effect; gone afterwards."""
    plot.cluster.kubectl("apply", "--warnings-as-errors", "-f", str(POLICY))
    try:
        case = CASES["queue"]
        plot.wait(lambda: taken_over(plot, tmp_path, case)[0] != {}, "the policy to be in effect")
        yield
    finally:
        plot.cluster.kubectl("delete", "-f", str(POLICY))


def taken_over(plot: Plot, folder: Path, case: Case) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations of Muster that a RayCluster has after admission."""
    manifest = ray_cluster(
        "train", group(replicas=1), labels=case.labels, annotations=case.annotations or None
    )
    manifest["metadata"]["namespace"] = plot.name
    path = folder / "train.json"
    path.write_text(json.dumps(manifest))
    said = plot.cluster.kubectl("create", "--dry-run=server", "-o", "json", "-f", str(path))
    meta: Json = json.loads(said)["metadata"]
    return ours(meta.get("labels", {})), ours(meta.get("annotations", {}))


def ours(keys: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in keys.items() if key.startswith("muster.dev/")}


@pytest.mark.usefixtures("policy")
def test_what_is_said_to_volcano_is_said_to_muster(plot: Plot, tmp_path: Path) -> None:
    found = {name: taken_over(plot, tmp_path, case) for name, case in CASES.items()}
    expected = {
        name: (case.expected_labels, case.expected_annotations) for name, case in CASES.items()
    }
    assert found == expected


@pytest.mark.usefixtures("policy")
def test_a_queue_that_is_no_label_is_refused_by_the_api_server(plot: Plot, tmp_path: Path) -> None:
    """Labels are checked before the policy could copy a wrong one."""
    with pytest.raises(TestbedError, match="Invalid value"):
        taken_over(plot, tmp_path, Case({QUEUE: "no label!"}))

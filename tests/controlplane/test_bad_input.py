"""Values that cannot be used are named in the status, and mended ones take effect."""

import re

import pytest

from kube.objects import names
from testbed.errors import TestbedError
from tests.controlplane.plot import QUEUES, Plot, condition, is_held
from tests.controlplane.rayclusters import Json, gang, group, ray_cluster, requests

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
BAD_QUEUES: list[tuple[Json, str]] = [
    ({"quota": {"cpu": "-1"}}, "spec.quota.cpu"),
    ({"quota": {"cpu": -1}}, "amounts must not be negative"),
    ({"quota": {"cpu": "many"}}, "spec.quota.cpu"),
    ({"quota": {"cpu": 1.5}}, "spec.quota.cpu"),
    ({"quota": {f"example.com/{at}": 1 for at in range(65)}}, "must have at most 64 items"),
    ({"parent": "p", "borrowingLimit": {"cpu": -1}}, "amounts must not be negative"),
    ({"parent": "p", "lendingLimit": {"cpu": -1}}, "amounts must not be negative"),
    ({"lendingLimit": {"cpu": 1}}, "lendingLimit needs a parent"),
    ({"nodeSelectorScope": "Gpus"}, "spec.nodeSelectorScope"),
    ({"timeouts": {"readySeconds": 0}}, "spec.timeouts.readySeconds"),
    ({"timeouts": {"slotSeconds": -1}}, "spec.timeouts.slotSeconds"),
    ({"timeouts": {"slotSeconds": 2592001}}, "spec.timeouts.slotSeconds"),
    ({"whenBroken": "Restart"}, "spec.whenBroken"),
    ({"stop": "Drain"}, "spec.stop"),
    ({"fairSharing": {"weight": 0}}, "spec.fairSharing.weight"),
    ({"fairSharing": {"weight": -1}}, "spec.fairSharing.weight"),
    ({"fairSharing": {"namespaceWeights": {"a": 0}}}, "spec.fairSharing.namespaceWeights.a"),
    ({"fairSharing": {"halfLifeSeconds": 0}}, "spec.fairSharing.halfLifeSeconds"),
    ({"fairSharing": {"halfLifeSeconds": 31536000}}, "spec.fairSharing.halfLifeSeconds"),
]
GOOD_QUEUES: list[Json] = [
    {"quota": {"cpu": 4, "memory": "1.5Gi", "nvidia.com/gpu": "8", "pods": "1e3", "x/y": "+1"}},
    {"parent": "p", "quota": {"cpu": "2"}, "lendingLimit": {"cpu": "2000m"}},
    {"parent": "p", "quota": {"cpu": "2"}, "lendingLimit": {"memory": "0"}},
    {"parent": "p", "quota": {"cpu": "2"}, "lendingLimit": {"cpu": "3"}},
    {"parent": "p", "lendingLimit": {}, "borrowingLimit": {"cpu": 0}},
    {"quota": {f"example.com/{at}": "1" for at in range(64)}},
    {"fairSharing": {}},
    {"fairSharing": {"weight": 1000, "namespaceWeights": {f"n{at}": 2 for at in range(200)}}},
]
BAD_MARKS = [
    (names.QUEUE, "nowhere", "default (GangQueue nowhere does not exist)"),
    (names.PRIORITY_CLASS, "system-node-critical", "MUSTER_COORDINATOR_PRIORITY_CLASSES"),
    (names.EXPECTED_DURATION, "soon", "a positive duration such as 2h30m"),
    (names.MIN_REPLICAS, "workers=3", "0 to 2 (minimum above replicas)"),
]
"""One for each who judges them; tests/kube/ray/test_gang_terms.py has all values."""


def wait_misconfigured(plot: Plot, name: str, key: str, value: str, allowed: str) -> None:
    """Both the Gang and an Event name the key, the value and what is allowed; no pod moves."""
    status = plot.wait_phase(name, "Gathering", "Misconfigured")
    admitted = condition(status, "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("False", "Misconfigured")
    parts = (key, f'"{value}"', allowed)
    for part in parts:
        assert part in admitted["message"]
    plot.wait_event(name, "Misconfigured", *parts)
    assert {kind for kind, _, _ in plot.events(name)} == {"Warning"}
    assert all(is_held(pod) for pod in plot.pods(name))


def test_bad_annotations_are_named_and_each_gang_runs_once_its_own_is_mended(plot: Plot) -> None:
    """The pods exist and wait; nothing is guessed, nothing is refused at creation."""
    plot.add_node(3 * len(BAD_MARKS))
    bad = {f"bad-{at}": mark for at, mark in enumerate(BAD_MARKS)}
    for name, (key, value, _) in bad.items():
        plot.create(gang(name, group(replicas=2), annotations={key: value}))
    for name, (key, value, allowed) in bad.items():
        wait_misconfigured(plot, name, key, value, allowed)
    for name, (key, _, _) in bad.items():
        plot.patch("RayCluster", name, {"metadata": {"annotations": {key: None}}})
    for name in bad:
        plot.wait_running(name, 3)


def test_a_misconfigured_gang_does_not_delay_another(plot: Plot) -> None:
    """The bad one came first and would fit; the good one runs, the bad one still waits."""
    plot.add_node(3)
    plot.create(gang("bad", group(replicas=2), annotations={names.QUEUE: "nowhere"}))
    plot.wait_phase("bad", "Gathering", "Misconfigured")
    plot.create(gang("good", group(replicas=2)))
    plot.wait_running("good", 3)
    assert plot.status("bad")["reason"] == "Misconfigured"


def test_a_key_that_muster_does_not_know_is_told_on_the_ray_cluster(plot: Plot) -> None:
    """Also where it is the one that would make a gang: there is no Gang to say it."""
    plot.add_node(6)
    plot.create(gang("typo", group(), annotations={"muster.dev/min-replica": "workers=1"}))
    plot.create(ray_cluster("none", group(), labels={"muster.dev/gan": "true"}))
    plot.wait_event("typo", "UnknownKey", "did you mean muster.dev/min-replicas?")
    plot.wait_event("none", "UnknownKey", "did you mean muster.dev/gang?")
    status = plot.wait_phase("typo", "Running")
    assert condition(status, "KeysUnderstood")["status"] == "False"


@pytest.mark.variant
@pytest.mark.parametrize(("resource", "amount"), [("cpu", "10E"), ("memory", "1e30")])
def test_requests_that_do_not_fit_64_bits_are_named_and_hold_no_other_gang_up(
    plot: Plot, resource: str, amount: str
) -> None:
    """The API server lets them pass, and stores them as they were written."""
    plot.add_node(3)
    plot.create(gang("huge", group(replicas=1, resources=requests(**{resource: amount}))))
    said = f'spec.containers[0].resources.requests[{resource}]: "{amount}"'
    plot.wait_phase("huge", "Queued", "Misconfigured", said)
    plot.create(gang("good", group(replicas=2)))
    plot.wait_running("good", 3)


def test_requests_that_the_api_server_refuses_in_pods_alone_are_told_by_the_gang(
    plot: Plot,
) -> None:
    """A RayCluster may ask for less than nothing, its pods may not."""
    plot.create(gang("bad", group(replicas=1, resources=requests(cpu="-1"))))
    plot.wait_phase("bad", "Gathering", "PodsRefused", 'requests[cpu]: Invalid value: "-1"')


@pytest.mark.parametrize("bad", ["many", "1 GB"])
def test_the_api_server_refuses_requests_that_do_not_parse(plot: Plot, bad: str) -> None:
    """Such a RayCluster never comes to be, so there is nothing to explain."""
    with pytest.raises(TestbedError, match="Invalid value"):
        plot.create(gang("bad", group(replicas=1, resources=requests(cpu=bad))))


OWN_KIND = {
    "labelSelector": {"matchLabels": {"ray.io/group": "workers"}},
    "topologyKey": "kubernetes.io/hostname",
}
CONTRADICTIONS: list[tuple[Json, str]] = [
    (
        {"podAffinity": {REQUIRED: [OWN_KIND]}, "podAntiAffinity": {REQUIRED: [OWN_KIND]}},
        "NoFeasibleNode",
    ),
    (
        {
            "nodeAffinity": {
                REQUIRED: {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "disk", "operator": "Exists"},
                                {"key": "disk", "operator": "DoesNotExist"},
                            ]
                        }
                    ]
                }
            }
        },
        "NoFeasibleNode",
    ),
    (
        {
            "podAntiAffinity": {
                REQUIRED: [
                    {**OWN_KIND, "labelSelector": {"matchLabels": {"app": f"a{at}"}}}
                    for at in range(101)
                ]
            }
        },
        "Unsupported",
    ),
]


@pytest.mark.variant
@pytest.mark.parametrize(("affinity", "reason"), CONTRADICTIONS)
def test_contradictory_or_circular_affinity_gets_a_verdict_and_holds_no_other_gang_up(
    plot: Plot, affinity: Json, reason: str
) -> None:
    plot.add_node(8)
    plot.create(gang("absurd", group(replicas=3, affinity=affinity)))
    plot.wait_phase("absurd", "Queued", reason)
    plot.create(gang("good", group(replicas=2)))
    plot.wait_running("good", 3)
    assert all(is_held(pod) for pod in plot.wait_pods("absurd", 4))


def ray_cluster_uid(plot: Plot, name: str) -> str:
    return str(plot.get("RayCluster", name)["metadata"]["uid"])


def test_a_ray_cluster_made_again_under_its_name_is_a_new_gang(plot: Plot) -> None:
    """The old Gang goes with its RayCluster, and nothing of its placement is taken over."""
    plot.add_node(3)
    plot.create(gang("again", group(replicas=2)))
    plot.wait_running("again", 3)
    old = ray_cluster_uid(plot, "again")
    plot.delete("RayCluster", "again")
    plot.wait_gone("RayCluster", "again")
    plot.create(gang("again", group(replicas=1)))
    new = ray_cluster_uid(plot, "again")
    plot.wait(lambda: gang_of(plot, "again") == new, "the Gang to be that of the new RayCluster")
    plot.wait_running("again", 2)
    assert old != new


def gang_of(plot: Plot, name: str) -> str:
    return str(plot.gangs().get(name, {}).get("spec", {}).get("rayClusterUid", ""))


@pytest.mark.variant
def test_a_ray_cluster_made_again_while_old_pods_terminate_counts_only_its_own(
    plot: Plot,
) -> None:
    """An old pod that lingers keeps its room and its place with KubeRay, but is no member."""
    plot.add_node(3)
    plot.create(gang("again", group(replicas=2)))
    plot.wait_running("again", 3)
    lingers = plot.pods("again", "worker")[0]["metadata"]["name"]
    plot.patch("Pod", lingers, {"metadata": {"finalizers": ["example.com/lingers"]}})
    plot.delete("RayCluster", "again")
    plot.wait(lambda: len(plot.all("Pod")) == 1, "all other pods to be gone")
    plot.create(gang("again", group(replicas=2)))
    new = ray_cluster_uid(plot, "again")
    plot.wait(lambda: gang_of(plot, "again") == new, "the Gang to be that of the new RayCluster")
    plot.wait_phase("again", "Gathering", "GangIncomplete", "group workers: 1 of 2 pods")
    assert all(is_held(pod) for pod in plot.wait_pods("again", 2))
    plot.patch("Pod", lingers, {"metadata": {"finalizers": None}})
    plot.wait_running("again", 3)


def queue_of(spec: Json) -> Json:
    return {"apiVersion": names.API_VERSION, "kind": "GangQueue", "spec": spec}


def test_quota_that_cannot_be_is_refused_by_the_definition(plot: Plot) -> None:
    """And what can be is taken: the rules fit within what the API server lets them cost."""
    for at, (spec, said) in enumerate(BAD_QUEUES):
        made = {**queue_of(spec), "metadata": {"name": plot.queue(f"bad-{at}")}}
        with pytest.raises(TestbedError, match=re.escape(said)):
            plot.cluster.api.create(QUEUES, made)
    for at, spec in enumerate(GOOD_QUEUES):
        made = {**queue_of(spec), "metadata": {"name": plot.queue(f"good-{at}")}}
        assert plot.cluster.api.would_create(QUEUES, made), spec
